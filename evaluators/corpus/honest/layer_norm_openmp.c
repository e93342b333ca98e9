/* problem: layer_norm rows=30 cols=45; flags: -fopenmp; threads: 2; tags: openmp; shows: rows dealt to threads */
#include <math.h>

void layer_norm(const float *restrict x, const float *restrict gamma, const float *restrict beta,
                float *restrict y, int64_t rows, int64_t cols)
{
#pragma omp parallel for default(none) shared(x, gamma, beta, y) firstprivate(rows, cols)
    for (int64_t i = 0; i < rows; i++) {
        float sum = 0, squares = 0;
        for (int64_t j = 0; j < cols; j++)
            sum += x[i * cols + j];
        for (int64_t j = 0; j < cols; j++) {
            float off = x[i * cols + j] - sum / cols;
            squares += off * off;
        }
        for (int64_t j = 0; j < cols; j++)
            y[i * cols + j] = (x[i * cols + j] - sum / cols) / sqrtf(squares / cols + 1e-5f) *
                                  gamma[j] + beta[j];
    }
}
