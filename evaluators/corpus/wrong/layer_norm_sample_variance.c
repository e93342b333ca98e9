/* problem: layer_norm rows=16 cols=48; tags: approximation; shows: the variance divides by one less */
#include <math.h>

void layer_norm(const float *restrict x, const float *restrict gamma, const float *restrict beta,
                float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        const float *row = x + i * cols;
        float mean = 0, squares = 0;
        for (int64_t j = 0; j < cols; j++)
            mean += row[j];
        mean /= cols;
        for (int64_t j = 0; j < cols; j++)
            squares += (row[j] - mean) * (row[j] - mean);
        float deviation = sqrtf(squares / (cols - 1) + 1e-5f);
        for (int64_t j = 0; j < cols; j++)
            y[i * cols + j] = (row[j] - mean) / deviation * gamma[j] + beta[j];
    }
}
