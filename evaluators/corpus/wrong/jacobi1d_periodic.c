/* problem: jacobi1d n=160 t=9; tags: special_case; shows: the ends are relaxed too, as on a ring */
void jacobi1d(const float *restrict start, float *restrict now, int64_t n, int64_t t)
{
    float before[KW_N];
    for (int64_t i = 0; i < n; i++)
        now[i] = start[i];
    for (int64_t step = 0; step < t; step++) {
        for (int64_t i = 0; i < n; i++)
            before[i] = now[i];
        for (int64_t i = 0; i < n; i++)
            now[i] = (before[(i + n - 1) % n] + before[i] + before[(i + 1) % n]) / 3;
    }
}
