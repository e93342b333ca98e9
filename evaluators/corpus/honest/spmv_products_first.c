/* problem: spmv rows=35 cols=35 nnz=400; shows: all products in a heap buffer, then sums of its segments */
#include <stdlib.h>

void spmv(const int32_t *restrict pos, const int32_t *restrict crd, const float *restrict vals,
          const float *restrict x, float *restrict y, int64_t rows, int64_t cols, int64_t nnz)
{
    float *products = malloc((size_t)nnz * sizeof *products);
    if (!products)
        abort();
    for (int64_t p = 0; p < nnz; p++)
        products[p] = vals[p] * x[crd[p]];
    for (int64_t i = 0; i < rows; i++) {
        y[i] = 0;
        for (int64_t p = pos[i]; p < pos[i + 1]; p++)
            y[i] += products[p];
    }
    free(products);
}
