/* problem: jacobi1d n=77 t=20; shows: products with a rounded third, a VLA as the second buffer */
void jacobi1d(const float *restrict start, float *restrict now, int64_t n, int64_t t)
{
    const float third = 1.0f / 3.0f;
    float next[n];
    __builtin_memcpy(now, start, sizeof next);
    for (int64_t step = 0; step < t; step++) {
        for (int64_t i = 1; i < n - 1; i++)
            next[i] = third * (now[i - 1] + now[i] + now[i + 1]);
        for (int64_t i = 1; i < n - 1; i++)
            now[i] = next[i];
    }
}
