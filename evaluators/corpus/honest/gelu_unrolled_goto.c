/* problem: gelu n=143; shows: four elements a round, tail by goto */
#include <math.h>
#define ONE(k) y[i + k] = x[i + k] * 0.5f * (1 + erff(x[i + k] * 0.70710678f))

void gelu(const float *restrict x, float *restrict y, int64_t n)
{
    int64_t i = 0;
round:
    if (i + 4 > n)
        goto tail;
    ONE(0);
    ONE(1);
    ONE(2);
    ONE(3);
    i += 4;
    goto round;
tail:
    if (i == n)
        return;
    ONE(0);
    i++;
    goto tail;
}
