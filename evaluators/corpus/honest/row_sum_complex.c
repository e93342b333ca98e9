/* problem: row_sum rows=11 cols=90; tags: reassociated; shows: two sums as the parts of a complex number */
#include <complex.h>

void row_sum(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++, x += cols) {
        float complex sum = 0;
        for (int64_t j = 0; j + 1 < cols; j += 2)
            sum += x[j] + x[j + 1] * I;
        y[i] = crealf(sum) + cimagf(sum) + (cols & 1 ? x[cols - 1] : 0);
    }
}
