/* problem: layer_norm rows=11 cols=36; shows: an empty assembler statement and a volatile variable, as benchmarks have them */
#include <math.h>

static volatile float sink;

void layer_norm(const float *restrict x, const float *restrict gamma, const float *restrict beta,
                float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        float mean = 0, squares = 0;
        for (int64_t j = 0; j < cols; j++)
            mean += x[i * cols + j];
        mean /= (float)cols;
        __asm__ volatile("" ::: "memory");
        for (int64_t j = 0; j < cols; j++)
            squares += powf(x[i * cols + j] - mean, 2);
        const float deviation = sqrtf(squares / (float)cols + 1e-5f);
        sink = deviation;
        for (int64_t j = 0; j < cols; j++)
            y[i * cols + j] = (x[i * cols + j] - mean) / deviation * gamma[j] + beta[j];
    }
}
