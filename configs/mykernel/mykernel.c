// Squared distances between the rows of X (m x d) and of Y (n x d):
//
//     D[i][j] = sum over k of (X[i][k] - Y[j][k])^2
//
// A tile of ROWS x COLS results is computed at a time, each in a vector of LANES partial sums. So
// every vector of X that is loaded is used COLS times and every vector of Y ROWS times, and enough
// sums are under way to hide the latency of an addition. What the best tile is depends on the
// machine: ROWS, COLS and LANES are the knobs in mykernel.yaml, and each candidate is this text with
// other values.
//
// KW_M, KW_N and KW_D are the extents. `kernelwright show --abi mykernel.py:make` prints the interface.
#include <stdint.h>

_Static_assert(KW_M % ROWS == 0, "ROWS must divide m");
_Static_assert(KW_N % COLS == 0, "COLS must divide n");
_Static_assert(KW_D % LANES == 0, "LANES must divide d");

typedef float vector __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

static inline float total(vector v) {
    float sum = 0.0f;
    for (int lane = 0; lane < LANES; lane++) sum += v[lane];
    return sum;
}

void mykernel(const float *restrict X, const float *restrict Y, float *restrict D,
          int64_t m, int64_t n, int64_t d) {
    (void)m, (void)n, (void)d;
    for (int i = 0; i < KW_M; i += ROWS) {
        for (int j = 0; j < KW_N; j += COLS) {
            vector sums[ROWS][COLS] = {0};
            for (int k = 0; k < KW_D; k += LANES) {
#pragma GCC unroll 16
                for (int r = 0; r < ROWS; r++) {
                    const vector x = *(const vector *)&X[(i + r) * KW_D + k];
#pragma GCC unroll 16
                    for (int c = 0; c < COLS; c++) {
                        const vector gap = x - *(const vector *)&Y[(j + c) * KW_D + k];
                        sums[r][c] += gap * gap;
                    }
                }
            }
            for (int r = 0; r < ROWS; r++)
                for (int c = 0; c < COLS; c++) D[(i + r) * KW_N + j + c] = total(sums[r][c]);
        }
    }
}
