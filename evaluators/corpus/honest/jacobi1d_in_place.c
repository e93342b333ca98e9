/* problem: jacobi1d n=101 t=12; shows: in place, the old left neighbour kept in a register */
void jacobi1d(const float *restrict start, float *restrict now, int64_t n, int64_t t)
{
    for (int64_t i = 0; i < n; i++)
        now[i] = start[i];
    while (t-- > 0) {
        float left = now[0];
        for (int64_t i = 1; i + 1 < n; i++) {
            float here = now[i];
            now[i] = (left + here + now[i + 1]) / 3;
            left = here;
        }
    }
}
