/* problem: spmv rows=40 cols=60 nnz=700; tags: reassociated; shows: four sums a row and a tail */
void spmv(const int32_t *restrict pos, const int32_t *restrict crd, const float *restrict vals,
          const float *restrict x, float *restrict y, int64_t rows, int64_t cols, int64_t nnz)
{
    for (int64_t i = 0; i < rows; i++) {
        float s[4] = {0, 0, 0, 0};
        int32_t p = pos[i], end = pos[i + 1];
        while (p + 4 <= end) {
            s[0] += vals[p] * x[crd[p]];
            s[1] += vals[p + 1] * x[crd[p + 1]];
            s[2] += vals[p + 2] * x[crd[p + 2]];
            s[3] += vals[p + 3] * x[crd[p + 3]];
            p += 4;
        }
        float sum = (s[0] + s[2]) + (s[1] + s[3]);
        while (p < end) {
            sum += vals[p] * x[crd[p]];
            p++;
        }
        y[i] = sum;
    }
}
