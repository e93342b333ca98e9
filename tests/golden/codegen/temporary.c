#include <math.h>
#include <stdint.h>
#include <stdlib.h>

void temporary(const float *restrict x, float *restrict y) {
    for (int64_t i = 0; i < 6; i++) {
        float t[5] __attribute__((aligned(64)));
        for (int64_t j = 0; j < 5; j++) {
            t[j] = x[i] * ((float)j);
        }
        y[i] = 0.0f;
        for (int64_t q = 0; q < 5; q++) {
            y[i] += t[q];
        }
    }
}
