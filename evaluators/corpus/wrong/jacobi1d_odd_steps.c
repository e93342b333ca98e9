/* problem: jacobi1d n=160 t=9; tags: special_case; shows: two buffers, the wrong one is returned after an odd number of steps */
void jacobi1d(const float *restrict start, float *restrict now, int64_t n, int64_t t)
{
    float other[KW_N];
    for (int64_t i = 0; i < n; i++)
        now[i] = other[i] = start[i];
    float *from = now, *to = other;
    for (int64_t step = 0; step < t; step++) {
        for (int64_t i = 1; i < n - 1; i++)
            to[i] = (from[i - 1] + from[i] + from[i + 1]) / 3;
        float *swap = from;
        from = to;
        to = swap;
    }
}
