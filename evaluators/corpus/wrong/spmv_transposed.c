/* problem: spmv rows=32 cols=32 nnz=200; tags: order; shows: the product with the transposed matrix */
void spmv(const int32_t *restrict pos, const int32_t *restrict crd, const float *restrict vals,
          const float *restrict x, float *restrict y, int64_t rows, int64_t cols, int64_t nnz)
{
    for (int64_t i = 0; i < rows; i++)
        y[i] = 0;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t p = pos[i]; p < pos[i + 1]; p++)
            y[crd[p]] += vals[p] * x[i];
}
