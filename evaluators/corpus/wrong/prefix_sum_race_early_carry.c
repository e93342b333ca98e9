/* problem: prefix_sum n=600; threads: 2; tags: race; shows: the second half reads its carry before the first half has written it */
#include <omp.h>

void prefix_sum(const float *restrict x, float *restrict y, int64_t n)
{
    volatile float carry = 0;
#pragma omp parallel num_threads(2)
    {
        const int me = omp_get_thread_num();
        int64_t from = me ? n / 2 : 0, to = me ? n : n / 2;
        float sum = me ? carry : 0;
#pragma omp barrier
        for (int64_t i = from; i < to; i++)
            y[i] = sum += x[i];
        if (me == 0)
            carry = sum;
    }
}
