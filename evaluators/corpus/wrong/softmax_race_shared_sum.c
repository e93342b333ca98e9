/* problem: softmax rows=16 cols=30; threads: 2; tags: race; shows: the sum of a row is shared with the thread that works on the next */
#include <math.h>
#include <omp.h>

void softmax(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    static volatile float shared;
#pragma omp parallel num_threads(2)
    {
        const int me = omp_get_thread_num();
        for (int64_t i = me; i < rows / 2 * 2; i += 2) {
            const float *in = x + i * cols;
            float *out = y + i * cols, top = in[0], sum = 0;
            for (int64_t j = 1; j < cols; j++)
                top = in[j] > top ? in[j] : top;
            for (int64_t j = 0; j < cols; j++)
                sum += out[j] = expf(in[j] - top);
            shared = sum;
#pragma omp barrier
            for (int64_t j = 0; j < cols; j++)
                out[j] /= shared;
#pragma omp barrier
        }
    }
}
