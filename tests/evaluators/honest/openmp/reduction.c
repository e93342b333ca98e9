#include <omp.h>
void f(const float *a, float *b, int64_t n) {
    float s = 0; int threads = omp_get_max_threads();
    #pragma omp parallel for reduction(+:s) schedule(dynamic, 64) num_threads(threads)
    for (int64_t i = 0; i < n; i++) s += a[i];
    b[0] = s;
}
