#include <math.h>
#include <stdint.h>
#include <stdlib.h>

typedef float f32x8 __attribute__((vector_size(32), aligned(4), may_alias));

void tiled(const float *restrict A, const float *restrict B, float *restrict C) {
    for (int64_t i0 = 0; i0 < 16; i0++) {
        for (int64_t j0 = 0; j0 < 32; j0++) {
            C[i0 * 32 + j0] = 0.0f;
        }
    }
    for (int64_t io = 0; io < 4; io++) {
        for (int64_t jo = 0; jo < 4; jo++) {
            for (int64_t k = 0; k < 8; k++) {
                *(f32x8 *)(C + io * 128 + jo * 8) += A[io * 32 + k] * *(const f32x8 *)(B + k * 32 + jo * 8);
                *(f32x8 *)(C + io * 128 + 32 + jo * 8) += A[io * 32 + 8 + k] * *(const f32x8 *)(B + k * 32 + jo * 8);
                *(f32x8 *)(C + io * 128 + 64 + jo * 8) += A[io * 32 + 16 + k] * *(const f32x8 *)(B + k * 32 + jo * 8);
                *(f32x8 *)(C + io * 128 + 96 + jo * 8) += A[io * 32 + 24 + k] * *(const f32x8 *)(B + k * 32 + jo * 8);
            }
        }
    }
}
