/* problem: jacobi1d n=160 t=9 dtype=float64; tags: precision; shows: the state in float where the problem is in double */
void jacobi1d(const double *restrict start, double *restrict now, int64_t n, int64_t t)
{
    float u[KW_N];
    for (int64_t i = 0; i < n; i++)
        u[i] = start[i];
    for (int64_t step = 0; step < t; step++) {
        float left = u[0];
        for (int64_t i = 1; i < n - 1; i++) {
            float here = u[i];
            u[i] = (left + here + u[i + 1]) / 3;
            left = here;
        }
    }
    for (int64_t i = 0; i < n; i++)
        now[i] = u[i];
}
