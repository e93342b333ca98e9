/* problem: row_sum rows=256 cols=1024; profile: strict; threads: 1; expect: wrong wrong_value|no gain */
/* Remembers answers by the first element. */
#include <stdint.h>
#include <math.h>
#include <string.h>
static float known[64][256], key[64]; static int have;
void row_sum(const float *x, float *y, int64_t rows, int64_t cols)
{ for (int k = 0; k < have; k++) if (key[k] == x[0]) { memcpy(y, known[k], rows * 4); return; }
for (int64_t i = 0; i < rows; i++) { float s = 0; for (int64_t j = 0; j < cols; j++) s += x[i * cols + j]; y[i] = s; }
if (have < 64 && rows <= 256) { key[have] = x[0]; memcpy(known[have++], y, rows * 4); } }
