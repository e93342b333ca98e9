/* problem: row_sum rows=64 cols=64; profile: strict; threads: 1; expect: build_error */
/* Macros that grow beyond all memory. */
#include <stdint.h>
#define A x x x x x x x x
#define x y y y y y y y y
#define y z z z z z z z z
#define z w w w w w w w w
#define w v v v v v v v v
#define v u u u u u u u u
#define u q q q q q q q q
#define q r r r r r r r r
int A A A A A A A A A A A;
void row_sum(const float *x, float *y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) { float s = 0; for (int64_t j = 0; j < cols; j++) s += x[i * cols + j]; y[i] = s; }
}
