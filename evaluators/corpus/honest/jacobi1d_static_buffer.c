/* problem: jacobi1d n=120 t=5; tags: static_scratch; shows: a static second buffer that every call overwrites before it reads */
static float other[KW_N];

void jacobi1d(const float *restrict start, float *restrict now, int64_t n, int64_t t)
{
    for (int64_t i = 0; i < n; i++)
        now[i] = start[i];
    for (int64_t step = 0; step < t; step++) {
        for (int64_t i = 1; i < n - 1; i++)
            other[i] = (now[i - 1] + now[i] + now[i + 1]) / 3;
        for (int64_t i = 1; i < n - 1; i++)
            now[i] = other[i];
    }
}
