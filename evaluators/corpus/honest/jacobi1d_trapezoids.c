/* problem: jacobi1d n=140 t=16; shows: space and time cut by recursion, Frigo and Strumpfen 2005, two rows on the heap */
#include <stdlib.h>

static void walk(float *u, int64_t n, int64_t t0, int64_t t1, int64_t x0, int64_t dx0, int64_t x1,
                 int64_t dx1)
{
    int64_t dt = t1 - t0;
    if (dt == 1) {
        const float *from = u + t0 % 2 * n;
        float *to = u + t1 % 2 * n;
        for (int64_t x = x0; x < x1; x++)
            to[x] = (from[x - 1] + from[x] + from[x + 1]) / 3;
    } else if (dt > 1) {
        if (2 * (x1 - x0) + (dx1 - dx0) * dt >= 4 * dt) {
            int64_t xm = (2 * (x0 + x1) + (2 + dx0 + dx1) * dt) / 4;
            walk(u, n, t0, t1, x0, dx0, xm, -1);
            walk(u, n, t0, t1, xm, -1, x1, dx1);
        } else {
            int64_t s = dt / 2;
            walk(u, n, t0, t0 + s, x0, dx0, x1, dx1);
            walk(u, n, t0 + s, t1, x0 + dx0 * s, dx0, x1 + dx1 * s, dx1);
        }
    }
}

void jacobi1d(const float *restrict start, float *restrict now, int64_t n, int64_t t)
{
    float *u = malloc(2 * (size_t)n * sizeof *u);
    if (!u)
        abort();
    for (int64_t i = 0; i < n; i++)
        u[i] = u[n + i] = start[i];
    walk(u, n, 0, t, 1, 0, n - 1, 0);
    for (int64_t i = 0; i < n; i++)
        now[i] = u[t % 2 * n + i];
    free(u);
}
