/* problem: spmv rows=40 cols=32 nnz=200; tags: special_case; shows: an empty row repeats the row before */
void spmv(const int32_t *restrict pos, const int32_t *restrict crd, const float *restrict vals,
          const float *restrict x, float *restrict y, int64_t rows, int64_t cols, int64_t nnz)
{
    float sum = 0;
    for (int64_t i = 0; i < rows; i++) {
        if (pos[i] < pos[i + 1])
            sum = 0;
        for (int64_t p = pos[i]; p < pos[i + 1]; p++)
            sum += vals[p] * x[crd[p]];
        y[i] = sum;
    }
}
