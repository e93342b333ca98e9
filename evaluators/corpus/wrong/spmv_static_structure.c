/* problem: spmv rows=40 cols=32 nnz=200; tags: stale_state; shows: the structure of the first call's matrix is kept */
void spmv(const int32_t *restrict pos, const int32_t *restrict crd, const float *restrict vals,
          const float *restrict x, float *restrict y, int64_t rows, int64_t cols, int64_t nnz)
{
    static int32_t rows_at[KW_ROWS + 1];
    static int have;
    for (int64_t i = 0; i <= rows && !have; i++)
        rows_at[i] = pos[i];
    have = 1;
    for (int64_t i = 0; i < rows; i++) {
        float sum = 0;
        for (int64_t p = rows_at[i]; p < rows_at[i + 1]; p++)
            sum += vals[p] * x[crd[p]];
        y[i] = sum;
    }
}
