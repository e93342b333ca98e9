/* problem: row_sum rows=256 cols=1024; profile: strict; threads: 1; expect: no gain|crashed|build_error|no gain */
/* Thread-local memory of 1 GiB. */
#include <stdint.h>
_Thread_local char t[1 << 30]; char *use(void) { return t; }
void row_sum(const float *x, float *y, int64_t rows, int64_t cols)
{
    
    for (int64_t i = 0; i < rows; i++) { float s = 0; for (int64_t j = 0; j < cols; j++) s += x[i * cols + j]; y[i] = s; }
    
}
