/* problem: jacobi1d n=90 t=11; shows: two steps in one sweep, the first runs one point ahead in registers, an odd step is done apart */
static void sweep(float *now, int64_t n, int steps)
{
    // The state before, and after one step, around point i.
    float old_left = now[0], old = now[1], mid_left = now[0], mid = 0;
    for (int64_t i = 1; i < n; i++) {
        float old_right = i + 1 < n ? now[i + 1] : 0;
        float ahead = i < n - 1 ? (old_left + old + old_right) / 3 : old;
        if (steps == 1) {
            now[i] = ahead;
        } else if (i > 1) {
            now[i - 1] = (mid_left + mid + ahead) / 3;
            mid_left = mid;
        }
        mid = ahead;
        old_left = old;
        old = old_right;
    }
}

void jacobi1d(const float *restrict start, float *restrict now, int64_t n, int64_t t)
{
    for (int64_t i = 0; i < n; i++)
        now[i] = start[i];
    for (; t >= 2; t -= 2)
        sweep(now, n, 2);
    if (t)
        sweep(now, n, 1);
}
