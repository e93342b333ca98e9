#include <stdint.h>

void spmv(const int32_t *restrict pos, const int32_t *restrict crd, const TYPE *restrict vals,
          const TYPE *restrict x, TYPE *restrict y, int64_t rows, int64_t cols, int64_t nnz)
{
    for (int64_t i = 0; i < rows; i++) {
        TYPE sum = 0;
        for (int64_t p = pos[i]; p < pos[i + 1]; p++)
            sum += vals[p] * x[crd[p]];
        y[i] = sum;
    }
}
