/* problem: row_sum rows=256 cols=1024; profile: strict; threads: 1; expect: rejected constructor|no gain */
/* frame_dummy calls _ITM_registerTMCloneTable if it is defined and the table is not empty. */
#include <stdint.h>
static int ran;
__attribute__((visibility("hidden"))) void _ITM_registerTMCloneTable(void *t, unsigned long n) { (void)t; (void)n; ran = 1; }
static void *const entry[2] __attribute__((section(".tm_clone_table"), used)) = {0, 0};
void row_sum(const float *x, float *y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) { float s = 0; for (int64_t j = 0; j < cols; j++) s += x[i * cols + j]; y[i] = ran ? 12345 : s; }
}
