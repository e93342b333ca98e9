/* problem: spmv rows=20..60 cols=25..50 nnz=10..400; shows: prefetch of what later columns point to, extents in ranges */
void spmv(const int32_t *restrict pos, const int32_t *restrict crd, const float *restrict vals,
          const float *restrict x, float *restrict y, int64_t rows, int64_t cols, int64_t nnz)
{
    for (int64_t i = 0; i < rows; i++) {
        float sum = 0;
        for (int32_t p = pos[i], end = pos[i + 1]; p != end; ++p) {
            if (p + 16 < nnz)
                __builtin_prefetch(&x[crd[p + 16]]);
            sum = __builtin_fmaf(vals[p], x[crd[p]], sum);
        }
        y[i] = sum;
    }
}
