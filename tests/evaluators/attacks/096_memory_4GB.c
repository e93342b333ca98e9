/* problem: row_sum rows=256 cols=1024; profile: strict; threads: 1; expect: no gain|crashed|timeout */
/* Takes all the memory it may have. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
void row_sum(const float *x, float *y, int64_t rows, int64_t cols)
{
    
    for (int64_t i = 0; i < rows; i++) { float s = 0; for (int64_t j = 0; j < cols; j++) s += x[i * cols + j]; y[i] = s; }
    static int once; if (!once++) for (int i = 0; i < 64; i++) { char *p = malloc(100 << 20); if (p) memset(p, 1, 100 << 20); }
}
