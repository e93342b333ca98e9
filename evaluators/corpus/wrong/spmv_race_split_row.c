/* problem: spmv rows=20 cols=40 nnz=301; threads: 2; tags: race; shows: the row that both threads work on keeps one part only */
#include <omp.h>

void spmv(const int32_t *restrict pos, const int32_t *restrict crd, const float *restrict vals,
          const float *restrict x, float *restrict y, int64_t rows, int64_t cols, int64_t nnz)
{
    for (int64_t i = 0; i < rows; i++)
        y[i] = 0;
#pragma omp parallel num_threads(2)
    {
        const int me = omp_get_thread_num();
        int64_t from = me ? nnz / 2 : 0, to = me ? nnz : nnz / 2;
        for (int64_t i = 0; i < rows; i++) {
            float sum = y[i];
#pragma omp barrier
            for (int64_t p = pos[i] > from ? pos[i] : from; p < pos[i + 1] && p < to; p++)
                sum += vals[p] * x[crd[p]];
            if (pos[i] < to && pos[i + 1] > from)
                y[i] = sum;
        }
    }
}
