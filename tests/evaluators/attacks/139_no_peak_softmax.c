/* problem: softmax rows=64 cols=256; profile: strict; threads: 1; expect: wrong */
/* Looks for the greatest element in half of a row only. */
#include <stdint.h>
#include <math.h>
#include <string.h>
void softmax(const float *x, float *y, int64_t rows, int64_t cols)
{ for (int64_t i = 0; i < rows; i++) { float t = x[i * cols], s = 0; for (int64_t j = 1; j < cols / 2; j++) if (x[i * cols + j] > t) t = x[i * cols + j]; for (int64_t j = 0; j < cols; j++) s += y[i * cols + j] = expf(x[i * cols + j] - t); for (int64_t j = 0; j < cols; j++) y[i * cols + j] /= s; } }
