/* problem: layer_norm rows=16 cols=30; threads: 2; tags: race; shows: the mean of a row is shared with the thread that works on the next */
#include <math.h>
#include <omp.h>

void layer_norm(const float *restrict x, const float *restrict gamma, const float *restrict beta,
                float *restrict y, int64_t rows, int64_t cols)
{
    static volatile float shared;
#pragma omp parallel num_threads(2)
    {
        const int me = omp_get_thread_num();
        for (int64_t i = me; i < rows / 2 * 2; i += 2) {
            const float *row = x + i * cols;
            float sum = 0, squares = 0;
            for (int64_t j = 0; j < cols; j++)
                sum += row[j];
            shared = sum / cols;
#pragma omp barrier
            const float mean = shared;
            for (int64_t j = 0; j < cols; j++)
                squares += (row[j] - mean) * (row[j] - mean);
            float deviation = sqrtf(squares / cols + 1e-5f);
            for (int64_t j = 0; j < cols; j++)
                y[i * cols + j] = (row[j] - mean) / deviation * gamma[j] + beta[j];
#pragma omp barrier
        }
    }
}
