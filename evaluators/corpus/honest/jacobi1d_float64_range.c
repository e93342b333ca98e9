/* problem: jacobi1d n=1..90 t=7 dtype=float64; shows: double precision, least extent one, where nothing moves */
void jacobi1d(const double *restrict start, double *restrict now, int64_t n, int64_t t)
{
    for (int64_t i = 0; i < n; i++)
        now[i] = start[i];
    if (n < 3)
        return;
    for (int64_t step = 0; step < t; step++) {
        double left = now[0], here = now[1];
        for (int64_t i = 1; i < n - 1; i++) {
            double right = now[i + 1];
            now[i] = (left + here + right) / 3;
            left = here;
            here = right;
        }
    }
}
