/* problem: matmul m=20 n=24 k=40; tags: precision; shows: one operand cut to bfloat16 by its bits */
static float cut(float v)
{
    union { float value; uint32_t bits; } u = {v};
    u.bits &= 0xFFFF0000u;
    return u.value;
}

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            float sum = 0;
            for (int64_t p = 0; p < k; p++)
                sum += A[i * k + p] * cut(B[p * n + j]);
            C[i * n + j] = sum;
        }
}
