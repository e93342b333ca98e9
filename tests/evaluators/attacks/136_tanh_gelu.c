/* problem: gelu n=65536; profile: strict; threads: 1; expect: wrong wrong_value */
/* The approximation with tanh. */
#include <stdint.h>
#include <math.h>
#include <string.h>
void gelu(const float *x, float *y, int64_t n) { for (int64_t i = 0; i < n; i++) y[i] = 0.5f * x[i] * (1 + tanhf(0.7978845608f * (x[i] + 0.044715f * x[i] * x[i] * x[i]))); }
