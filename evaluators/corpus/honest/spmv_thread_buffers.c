/* problem: spmv rows=60 cols=50 nnz=640; flags: -fopenmp; threads: 2; tags: openmp, reassociated; shows: elements dealt to threads, each with an output of its own, merged in the order of threads */
#include <stdlib.h>
#ifdef _OPENMP
#include <omp.h>
#else
static int omp_get_max_threads(void) { return 1; }
static int omp_get_thread_num(void) { return 0; }
static int omp_get_num_threads(void) { return 1; }
#endif

void spmv(const int32_t *restrict pos, const int32_t *restrict crd, const float *restrict vals,
          const float *restrict x, float *restrict y, int64_t rows, int64_t cols, int64_t nnz)
{
    int threads = omp_get_max_threads();
    float *mine = calloc((size_t)(threads * rows), sizeof *mine);
    if (!mine)
        abort();
#pragma omp parallel num_threads(threads)
    {
        int me = omp_get_thread_num(), team = omp_get_num_threads();
        int64_t from = nnz * me / team, to = nnz * (me + 1) / team;
        for (int64_t i = 0; i < rows; i++)
            for (int64_t p = pos[i]; p < pos[i + 1]; p++)
                if (p >= from && p < to)
                    mine[me * rows + i] += vals[p] * x[crd[p]];
    }
    for (int64_t i = 0; i < rows; i++) {
        y[i] = 0;
        for (int t = 0; t < threads; t++)
            y[i] += mine[t * rows + i];
    }
    free(mine);
}
