/* problem: row_sum rows=12 cols=80; threads: 2; tags: race; shows: both threads read the sum before either adds its part */
#include <omp.h>

void row_sum(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        y[i] = 0;
        #pragma omp parallel num_threads(2)
        {
            const int me = omp_get_thread_num();
            float sum = y[i];
#pragma omp barrier
            for (int64_t j = me; j < cols; j += 2)
                sum += x[i * cols + j];
            y[i] = sum;
        }
    }
}
