/* problem: spmv rows=25 cols=50 nnz=500; shows: compensated sums */
void spmv(const int32_t *restrict pos, const int32_t *restrict crd, const float *restrict vals,
          const float *restrict x, float *restrict y, int64_t rows, int64_t cols, int64_t nnz)
{
    for (int64_t i = 0; i < rows; i++) {
        float sum = 0, lost = 0;
        for (int64_t p = pos[i]; p < pos[i + 1]; p++) {
            float term = vals[p] * x[crd[p]] - lost;
            float next = sum + term;
            lost = (next - sum) - term;
            sum = next;
        }
        y[i] = sum;
    }
}
