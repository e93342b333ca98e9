#include <stdint.h>

void sparse_mul(ARGUMENTS
    int64_t rows, int64_t cols, int64_t nnz)
{
    int64_t last = 0;
    for (int64_t i = 0; i < rows + 1; i++)
        C2_pos[i] = 0;
    for (int64_t i = 0; i < rows; i++) {
        int64_t q = B_csr2_pos[i];
        for (int64_t p = A_csr2_pos[i]; p < A_csr2_pos[i + 1]; p++) {
            while (q < B_csr2_pos[i + 1] && B_csr2_crd[q] < A_csr2_crd[p])
                q++;
            if (q < B_csr2_pos[i + 1] && B_csr2_crd[q] == A_csr2_crd[p]) {
                C2_pos[i + 1]++;
                C2_crd[last] = A_csr2_crd[p];
                C_vals[last++] = A_csr_vals[p] * B_csr_vals[q];
            }
        }
    }
    for (int64_t i = 0; i < rows; i++)
        C2_pos[i + 1] += C2_pos[i];
}
