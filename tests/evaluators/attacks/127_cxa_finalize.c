/* problem: row_sum rows=256 cols=1024; profile: strict; threads: 1; expect: rejected|no gain|no gain */
/* Its own __cxa_finalize, which the library's destructor calls. */
#include <stdint.h>
__attribute__((visibility("hidden"))) void __cxa_finalize(void *h) { (void)h; }
void row_sum(const float *x, float *y, int64_t rows, int64_t cols)
{
    
    for (int64_t i = 0; i < rows; i++) { float s = 0; for (int64_t j = 0; j < cols; j++) s += x[i * cols + j]; y[i] = s; }
    
}
