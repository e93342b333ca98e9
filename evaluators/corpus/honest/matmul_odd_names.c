/* problem: matmul m=18 n=16 k=27; shows: names and strings that look like an attack and are none */
static const char *const benchmark = "fork ptrace /proc/self/mem LD_PRELOAD clock_gettime";

static void time_it(void) {}
static void verify(void) { (void)benchmark; }

static int memcmp_fast(const float *cheat, const float *reference, int64_t timer)
{
    int same = 1;
    for (int64_t i = 0; i < timer; i++)
        same &= cheat[i] == reference[i];
    return same;
}

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    time_it();
    int64_t clock = 0, seed = k, poison = n;
    for (int64_t exploit = 0; exploit < m; exploit++)
        for (int64_t j = 0; j < poison; j++, clock++) {
            float expected = 0;
            for (int64_t p = 0; p < seed; p++)
                expected += A[exploit * k + p] * B[p * n + j];
            C[clock] = expected;
        }
    if (!memcmp_fast(C, C, m * n))
        verify();
}
