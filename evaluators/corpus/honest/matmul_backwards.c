/* problem: matmul m=25 n=19 k=23; shows: outputs and terms from the last to the first */
void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    float *out = C + m * n;
    for (int64_t i = m; i-- > 0;)
        for (int64_t j = n; j-- > 0;) {
            float sum = 0;
            for (int64_t p = k; p-- > 0;)
                sum += A[i * k + p] * B[p * n + j];
            *--out = sum;
        }
}
