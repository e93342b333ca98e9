/* problem: spmv rows=28 cols=39 nnz=310 dtype=float64; tags: reassociated; shows: even and odd elements in two sums */
void spmv(const int32_t *restrict pos, const int32_t *restrict crd, const double *restrict vals,
          const double *restrict x, double *restrict y, int64_t rows, int64_t cols, int64_t nnz)
{
    for (int64_t i = 0; i < rows; i++) {
        double sums[2] = {0, 0};
        for (int64_t p = pos[i]; p < pos[i + 1]; p++)
            sums[p & 1] += vals[p] * x[crd[p]];
        y[i] = sums[0] + sums[1];
    }
}
