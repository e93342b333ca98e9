static void half(float *b, int64_t n) {
    if (n < 64) { for (int64_t i = 0; i < n; i++) b[i] *= 2; return; }
    #pragma omp task
    half(b, n / 2);
    half(b + n / 2, n - n / 2);
    #pragma omp taskwait
}
void f(const float *a, float *b, int64_t n) {
    #pragma omp parallel
    {
        #pragma omp for
        for (int64_t i = 0; i < n; i++) b[i] = a[i];
        #pragma omp single
        half(b, n);
        #pragma omp critical
        b[0] += 0;
        #pragma omp barrier
    }
}
