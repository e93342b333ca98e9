/* problem: spmv rows=70 cols=30 nnz=120; shows: empty rows and rows of one element are told apart before */
void spmv(const int32_t *restrict pos, const int32_t *restrict crd, const float *restrict vals,
          const float *restrict x, float *restrict y, int64_t rows, int64_t cols, int64_t nnz)
{
    for (int64_t i = 0; i < rows; i++) {
        const int32_t start = pos[i], length = pos[i + 1] - start;
        switch (length) {
        case 0:
            y[i] = 0;
            continue;
        case 1:
            y[i] = vals[start] * x[crd[start]];
            continue;
        }
        float sum = 0;
        for (int32_t p = 0; p < length; p++)
            sum += vals[start + p] * x[crd[start + p]];
        y[i] = sum;
    }
}
