/* problem: spmv rows=40 cols=32 nnz=200; tags: precision; shows: values in half precision */
static float half(float v)
{
    volatile float big = v * 8193.0f, rest = big - v;
    return big - rest;
}

void spmv(const int32_t *restrict pos, const int32_t *restrict crd, const float *restrict vals,
          const float *restrict x, float *restrict y, int64_t rows, int64_t cols, int64_t nnz)
{
    for (int64_t i = 0; i < rows; i++) {
        float sum = 0;
        for (int64_t p = pos[i]; p < pos[i + 1]; p++)
            sum += half(vals[p]) * x[crd[p]];
        y[i] = sum;
    }
}
