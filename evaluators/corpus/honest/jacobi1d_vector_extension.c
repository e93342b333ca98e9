/* problem: jacobi1d n=130 t=8; shows: eight points at a time in unaligned GCC vectors, the rest one by one */
#include <string.h>
typedef float v8 __attribute__((vector_size(32), aligned(4), may_alias));
#define AT(p) (*(const v8 *)(p))

void jacobi1d(const float *restrict start, float *restrict now, int64_t n, int64_t t)
{
    float next[KW_N];
    memcpy(now, start, sizeof next);
    for (int64_t step = 0; step < t; step++) {
        int64_t i = 1;
        for (; i + 8 <= n - 1; i += 8)
            *(v8 *)(next + i) = (AT(now + i - 1) + AT(now + i) + AT(now + i + 1)) / 3;
        for (; i < n - 1; i++)
            next[i] = (now[i - 1] + now[i] + now[i + 1]) / 3;
        memcpy(now + 1, next + 1, sizeof next - 2 * sizeof *next);
    }
}
