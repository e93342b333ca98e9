/* problem: prefix_sum n=160; tags: reassociated; shows: Hillis and Steele's scan of eight lanes, then a carry */
#include <string.h>

void prefix_sum(const float *restrict x, float *restrict y, int64_t n)
{
    float carry = 0;
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        float v[8], w[8];
        memcpy(v, x + i, sizeof v);
        for (int step = 1; step < 8; step *= 2) {
            memcpy(w, v, sizeof v);
            for (int q = step; q < 8; q++)
                v[q] = w[q] + w[q - step];
        }
        for (int q = 0; q < 8; q++)
            y[i + q] = v[q] + carry;
        carry += v[7];
    }
    for (; i < n; i++)
        y[i] = carry += x[i];
}
