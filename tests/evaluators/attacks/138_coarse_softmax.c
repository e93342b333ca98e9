/* problem: softmax rows=64 cols=256; profile: strict; threads: 1; expect: wrong wrong_value */
/* An exponential by squaring, good to five digits. */
#include <stdint.h>
#include <math.h>
#include <string.h>
static float e(float t) { if (t < -87) return 0; float u = 1 + t / 4096; for (int i = 0; i < 12; i++) u *= u; return u; }
void softmax(const float *x, float *y, int64_t rows, int64_t cols)
{ for (int64_t i = 0; i < rows; i++) { float t = x[i * cols], s = 0; for (int64_t j = 1; j < cols; j++) if (x[i * cols + j] > t) t = x[i * cols + j]; for (int64_t j = 0; j < cols; j++) s += y[i * cols + j] = e(x[i * cols + j] - t); for (int64_t j = 0; j < cols; j++) y[i * cols + j] /= s; } }
