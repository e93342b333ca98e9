/* problem: matmul m=12 n=14 k=150; tags: reassociated; shows: every inner product summed pairwise, Higham 2002, section 4.1 */
static float pairwise(const float *a, const float *b, int64_t stride, int64_t k)
{
    if (k <= 4) {
        float sum = 0;
        while (k-- > 0)
            sum += a[k] * b[k * stride];
        return sum;
    }
    int64_t half = k / 2;
    return pairwise(a, b, stride, half) + pairwise(a + half, b + half * stride, stride, k - half);
}

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j)
            C[i * n + j] = pairwise(A + i * k, B + j, n, k);
}
