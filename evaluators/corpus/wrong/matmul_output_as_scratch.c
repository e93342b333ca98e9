/* problem: matmul m=16 n=16 k=16; tags: aliasing; shows: B is packed into the output, which is overwritten while it is read */
void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    for (int64_t p = 0; p < k; p++)
        for (int64_t j = 0; j < n; j++)
            C[j * k + p] = B[p * n + j];
    for (int64_t j = n; j-- > 0;)
        for (int64_t i = m; i-- > 0;) {
            float sum = 0;
            for (int64_t p = 0; p < k; p++)
                sum += A[i * k + p] * C[j * k + p];
            C[i * n + j] = sum;
        }
}
