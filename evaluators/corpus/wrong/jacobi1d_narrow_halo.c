/* problem: jacobi1d n=200 t=10; tags: dropped_work; shows: tiles with a halo one point too narrow */
void jacobi1d(const float *restrict start, float *restrict now, int64_t n, int64_t t)
{
    float even[200], odd[200];
    for (int64_t from = 0; from < n; from += 24) {
        int64_t to = from + 24 < n ? from + 24 : n, halo = t - 1;
        int64_t low = from - halo > 0 ? from - halo : 0, high = to + halo < n ? to + halo : n;
        float *a = even, *b = odd;
        for (int64_t i = low; i < high; i++)
            a[i - low] = b[i - low] = start[i];
        for (int64_t step = 0; step < t; step++) {
            for (int64_t i = 1; i < high - low - 1; i++)
                b[i] = (a[i - 1] + a[i] + a[i + 1]) / 3;
            float *swap = a;
            a = b;
            b = swap;
        }
        for (int64_t i = from; i < to; i++)
            now[i] = a[i - low];
    }
}
