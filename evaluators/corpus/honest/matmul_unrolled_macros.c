/* problem: matmul m=17 n=24 k=20; shows: eight columns written out by macros */
#define EACH(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7)
#define DECLARE(c) float s##c = 0;
#define TERM(c) s##c += a * b[c];
#define STORE(c) out[c] = s##c;

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j += 8) {
            EACH(DECLARE)
            for (int64_t p = 0; p < k; p++) {
                const float a = A[i * k + p], *b = B + p * n + j;
                EACH(TERM)
            }
            float *out = C + i * n + j;
            EACH(STORE)
        }
}
