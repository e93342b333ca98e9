/* problem: spmv rows=50 cols=45 nnz=300; shows: one position runs through all rows */
void spmv(const int32_t *restrict pos, const int32_t *restrict crd, const float *restrict vals,
          const float *restrict x, float *restrict y, int64_t rows, int64_t cols, int64_t nnz)
{
    int64_t p = 0;
    for (int64_t i = 0; i < rows; i++) {
        float sum = 0;
        for (; p < pos[i + 1]; p++)
            sum += vals[p] * x[crd[p]];
        y[i] = sum;
    }
}
