/* problem: softmax rows=40 cols=31; flags: -fopenmp; threads: 2; tags: openmp; shows: rows dealt to threads, a max reduction clause in the row */
#include <math.h>

void softmax(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
#pragma omp parallel for
    for (int64_t i = 0; i < rows; i++) {
        const float *in = x + i * cols;
        float *out = y + i * cols;
        float top = in[0], sum = 0;
#pragma omp simd reduction(max : top)
        for (int64_t j = 0; j < cols; j++)
            top = in[j] > top ? in[j] : top;
        for (int64_t j = 0; j < cols; j++) {
            out[j] = expf(in[j] - top);
            sum += out[j];
        }
        for (int64_t j = 0; j < cols; j++)
            out[j] /= sum;
    }
}
