/* problem: matmul m=16 n=20 k=24; shows: _Generic picks the function by the type of the operand */
static float multiply_float(float a, float b) { return a * b; }
static double multiply_double(double a, double b) { return a * b; }
#define multiply(a, b) _Generic((a), float: multiply_float, double: multiply_double)(a, b)

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            float sum = multiply(A[i * k], B[j]);
            for (int64_t p = 1; p < k; p++)
                sum += multiply(A[i * k + p], B[p * n + j]);
            C[i * n + j] = sum;
        }
}
