/* problem: jacobi1d n=200 t=10; shows: tiles with a halo as wide as the number of steps, each relaxed on the stack */
enum { TILE = 24 };

void jacobi1d(const float *restrict start, float *restrict now, int64_t n, int64_t t)
{
    float even[TILE + 2 * KW_T], odd[TILE + 2 * KW_T];
    for (int64_t from = 0; from < n; from += TILE) {
        int64_t to = from + TILE < n ? from + TILE : n;
        int64_t low = from - t > 0 ? from - t : 0, high = to + t < n ? to + t : n;
        float *now_tile = even, *next = odd;
        for (int64_t i = low; i < high; i++)
            now_tile[i - low] = start[i];
        for (int64_t step = 0; step < t; step++) {
            next[0] = now_tile[0];
            next[high - low - 1] = now_tile[high - low - 1];
            for (int64_t i = 1; i < high - low - 1; i++)
                next[i] = (now_tile[i - 1] + now_tile[i] + now_tile[i + 1]) / 3;
            float *swap = now_tile;
            now_tile = next;
            next = swap;
        }
        for (int64_t i = from; i < to; i++)
            now[i] = now_tile[i - low];
    }
}
