/* problem: row_sum rows=12 cols=150 dtype=float64; shows: compensated summation that survives large terms, Neumaier 1974 */
#include <math.h>

void row_sum(const double *restrict x, double *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        double sum = 0, lost = 0;
        for (int64_t j = 0; j < cols; j++) {
            double v = x[i * cols + j], t = sum + v;
            lost += fabs(sum) >= fabs(v) ? (sum - t) + v : (v - t) + sum;
            sum = t;
        }
        y[i] = sum + lost;
    }
}
