/* problem: spmv rows=40 cols=300 nnz=500; tags: overflow; shows: column numbers in eight bits */
void spmv(const int32_t *restrict pos, const int32_t *restrict crd, const float *restrict vals,
          const float *restrict x, float *restrict y, int64_t rows, int64_t cols, int64_t nnz)
{
    for (int64_t i = 0; i < rows; i++) {
        float sum = 0;
        for (int64_t p = pos[i]; p < pos[i + 1]; p++)
            sum += vals[p] * x[(uint8_t)crd[p]];
        y[i] = sum;
    }
}
