/* problem: spmm rows=21 cols=33 width=19 nnz=200 formats=csr; tags: precision; shows: elements of B are rounded to half precision */
void spmm(const int32_t *restrict A_csr2_pos, const int32_t *restrict A_csr2_crd,
          const float *restrict A_csr_vals, const float *restrict B, float *restrict C,
          int64_t rows, int64_t cols, int64_t width, int64_t nnz)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < width; k++) {
            float sum = 0;
            for (int64_t p = A_csr2_pos[i]; p < A_csr2_pos[i + 1]; p++) {
                float b = B[A_csr2_crd[p] * width + k];
                float far = b * 4097.0f;
                sum += A_csr_vals[p] * (far - (far - b));
            }
            C[i * width + k] = sum;
        }
}
