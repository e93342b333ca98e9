/* problem: spmv rows=40 cols=32 nnz=200; tags: special_case; shows: every row is taken to have an element */
void spmv(const int32_t *restrict pos, const int32_t *restrict crd, const float *restrict vals,
          const float *restrict x, float *restrict y, int64_t rows, int64_t cols, int64_t nnz)
{
    for (int64_t i = 0; i < rows; i++) {
        int64_t p = pos[i] < nnz ? pos[i] : nnz - 1;
        float sum = 0;
        do
            sum += vals[p] * x[crd[p]];
        while (++p < pos[i + 1]);
        y[i] = sum;
    }
}
