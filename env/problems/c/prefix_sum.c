#include <stdint.h>

void prefix_sum(const TYPE *restrict x, TYPE *restrict y, int64_t n)
{
    TYPE sum = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += x[i];
        y[i] = sum;
    }
}
