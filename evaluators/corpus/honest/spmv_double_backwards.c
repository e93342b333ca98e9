/* problem: spmv rows=33 cols=44 nnz=350; shows: double sums, rows and elements from the last to the first */
void spmv(const int32_t *restrict pos, const int32_t *restrict crd, const float *restrict vals,
          const float *restrict x, float *restrict y, int64_t rows, int64_t cols, int64_t nnz)
{
    int64_t p = nnz;
    for (int64_t i = rows; i-- > 0;) {
        double sum = 0;
        while (p > pos[i]) {
            p--;
            sum += (double)vals[p] * x[crd[p]];
        }
        y[i] = (float)sum;
    }
}
