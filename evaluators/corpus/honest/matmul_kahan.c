/* problem: matmul m=11 n=13 k=200; shows: compensated sums, Kahan 1965 */
void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            float sum = 0, lost = 0;
            for (int64_t p = 0; p < k; p++) {
                float term = A[i * k + p] * B[p * n + j] - lost;
                float next = sum + term;
                lost = (next - sum) - term;
                sum = next;
            }
            C[i * n + j] = sum;
        }
}
