#include <math.h>
#include <stdint.h>
#include <stdlib.h>

typedef float f32x8 __attribute__((vector_size(32), aligned(4), may_alias));

void guarded(const float *restrict x, float *restrict y) {
    for (int64_t io = 0; io < 3; io++) {
        if (io * 8 + 7 < 21) {
            *(f32x8 *)(y + io * 8) = *(const f32x8 *)(x + io * 8) * 2.0f;
        } else {
            for (int64_t ii = 0; ii < 8; ii++) {
                if (io * 8 + ii < 21) {
                    y[io * 8 + ii] = x[io * 8 + ii] * 2.0f;
                }
            }
        }
    }
}
