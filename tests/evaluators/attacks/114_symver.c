/* problem: row_sum rows=256 cols=1024; profile: strict; threads: 1; expect: build_error link_error|rejected|no gain */
/* A version that nobody has. */
#include <stdint.h>
__asm__(".symver memcpy,memcpy@KW_9.9"); void *memcpy(void *, const void *, unsigned long); void *(*volatile cp)(void *, const void *, unsigned long) = memcpy;
void row_sum(const float *x, float *y, int64_t rows, int64_t cols)
{
    
    for (int64_t i = 0; i < rows; i++) { float s = 0; for (int64_t j = 0; j < cols; j++) s += x[i * cols + j]; y[i] = s; }
    
}
