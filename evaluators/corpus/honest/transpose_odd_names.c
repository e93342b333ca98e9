/* problem: transpose rows=26 cols=33; shows: functions called benchmark and warm_up, variables called clock and timer */
static void warm_up(void) {}

static inline void benchmark(const float *golden, float *result, int64_t clock, int64_t timer)
{
    for (int64_t tick = 0; tick < timer; tick++)
        for (int64_t tock = 0; tock < clock; tock++)
            result[tick * clock + tock] = golden[tock * timer + tick];
}

void transpose(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    warm_up();
    benchmark(x, y, rows, cols);
}
