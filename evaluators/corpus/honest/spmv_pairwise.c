/* problem: spmv rows=20 cols=90 nnz=800; tags: reassociated; shows: products of a row in a VLA, summed pairwise */
static float total(const float *v, int64_t n)
{
    return n < 1 ? 0 : n < 2 ? v[0] : total(v, n / 2) + total(v + n / 2, n - n / 2);
}

void spmv(const int32_t *restrict pos, const int32_t *restrict crd, const float *restrict vals,
          const float *restrict x, float *restrict y, int64_t rows, int64_t cols, int64_t nnz)
{
    float products[cols];
    for (int64_t i = 0; i < rows; i++) {
        int64_t length = pos[i + 1] - pos[i];
        for (int64_t q = 0; q < length; q++)
            products[q] = vals[pos[i] + q] * x[crd[pos[i] + q]];
        y[i] = total(products, length);
    }
}
