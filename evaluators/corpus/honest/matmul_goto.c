/* problem: matmul m=9 n=12 k=15; shows: loops written with goto */
void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    int64_t i = 0, j, p;
    float sum;
next_row:
    if (i == m)
        goto done;
    j = 0;
next_column:
    if (j == n) {
        i++;
        goto next_row;
    }
    sum = 0;
    p = 0;
next_term:
    if (p < k) {
        sum += A[i * k + p] * B[p * n + j];
        p++;
        goto next_term;
    }
    C[i * n + j] = sum;
    j++;
    goto next_column;
done:
    return;
}
