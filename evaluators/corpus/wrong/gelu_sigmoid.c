/* problem: gelu n=400; tags: approximation; shows: the approximation by a sigmoid */
#include <math.h>

void gelu(const float *restrict x, float *restrict y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] / (1 + expf(-1.702f * x[i]));
}
