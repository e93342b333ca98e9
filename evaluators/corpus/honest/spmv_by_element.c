/* problem: spmv rows=45 cols=40 nnz=333; shows: a loop over elements, the row is followed, the output cleared before */
#include <string.h>

void spmv(const int32_t *restrict pos, const int32_t *restrict crd, const float *restrict vals,
          const float *restrict x, float *restrict y, int64_t rows, int64_t cols, int64_t nnz)
{
    memset(y, 0, (size_t)rows * sizeof *y);
    int64_t row = 0;
    for (int64_t p = 0; p < nnz; p++) {
        while (p >= pos[row + 1])
            row++;
        y[row] += vals[p] * x[crd[p]];
    }
}
