#include <stdint.h>

void sparse_mul(ARGUMENTS
    int64_t rows, int64_t cols, int64_t nnz)
{
    int64_t last = 0;
    C2_pos[0] = 0;
    for (int64_t i = 0; i < rows; i++) {
        int64_t p = A_csr2_pos[i], q = B_csr2_pos[i];
        while (p < A_csr2_pos[i + 1] && q < B_csr2_pos[i + 1]) {
            int64_t ja = A_csr2_crd[p], jb = B_csr2_crd[q];
            if (ja == jb) {
                C2_crd[last] = (int32_t)ja;
                C_vals[last++] = A_csr_vals[p] * B_csr_vals[q];
            }
            p += ja <= jb;
            q += jb <= ja;
        }
        C2_pos[i + 1] = (int32_t)last;
    }
}
