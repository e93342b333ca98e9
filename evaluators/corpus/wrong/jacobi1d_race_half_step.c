/* problem: jacobi1d n=200 t=5; threads: 2; tags: race; shows: each thread relaxes its half in place, the second after the first */
#include <omp.h>

void jacobi1d(const float *restrict start, float *restrict now, int64_t n, int64_t t)
{
#pragma omp parallel num_threads(2)
    {
        const int me = omp_get_thread_num();
        int64_t from = me ? n / 2 : 1, to = me ? n - 1 : n / 2;
#pragma omp for
        for (int64_t i = 0; i < n; i++)
            now[i] = start[i];
        for (int64_t step = 0; step < t; step++)
            for (int turn = 0; turn < 2; turn++) {
                if (turn == me) {
                    float left = now[from - 1];
                    for (int64_t i = from; i < to; i++) {
                        float here = now[i];
                        now[i] = (left + here + now[i + 1]) / 3;
                        left = here;
                    }
                }
#pragma omp barrier
            }
    }
}
