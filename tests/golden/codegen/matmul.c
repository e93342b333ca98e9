#include <math.h>
#include <stdint.h>
#include <stdlib.h>

void matmul(const float *restrict A, const float *restrict B, float *restrict C) {
    for (int64_t i0 = 0; i0 < 4; i0++) {
        for (int64_t j0 = 0; j0 < 8; j0++) {
            C[i0 * 8 + j0] = 0.0f;
        }
    }
    for (int64_t i = 0; i < 4; i++) {
        for (int64_t k = 0; k < 4; k++) {
            for (int64_t j = 0; j < 8; j++) {
                C[i * 8 + j] += A[i * 4 + k] * B[k * 8 + j];
            }
        }
    }
}
