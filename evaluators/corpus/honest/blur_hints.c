/* problem: blur h=15 w=32; shows: promises to the compiler about alignment, branches and dependences */
#include <stdlib.h>

void blur(const float *restrict image, float *restrict out, int64_t h, int64_t w)
{
    float *stage = NULL;
    if (__builtin_expect(posix_memalign((void **)&stage, 64, (size_t)((h + 2) * w) * 4) != 0, 0))
        abort();
    float *__restrict__ s = __builtin_assume_aligned(stage, 64);
    for (int64_t y = 0; y < h + 2; y++) {
        const float *in = image + y * (w + 2);
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC ivdep
#endif
        for (int64_t x = 0; x < w; x++)
            s[y * w + x] = (in[x] + in[x + 1] + in[x + 2]) / 3;
    }
    for (register int64_t e = 0; e < h * w; e++)
        out[e] = (s[e] + s[e + w] + s[e + 2 * w]) / 3;
    free(stage);
}
