#include <stdint.h>

void spadd(ARGUMENTS
    int64_t rows, int64_t cols, int64_t nnz)
{
    int64_t last = 0;
    C2_pos[0] = 0;
    for (int64_t i = 0; i < rows; i++) {
        int64_t p = A_csr2_pos[i], q = B_csr2_pos[i];
        int64_t ends_a = A_csr2_pos[i + 1], ends_b = B_csr2_pos[i + 1];
        while (p < ends_a && q < ends_b) {
            int64_t ja = A_csr2_crd[p], jb = B_csr2_crd[q];
            TYPE sum = 0;
            C2_crd[last] = (int32_t)(ja < jb ? ja : jb);
            if (ja <= jb)
                sum += A_csr_vals[p++];
            if (jb <= ja)
                sum += B_csr_vals[q++];
            C_vals[last++] = sum;
        }
        for (int64_t k = 0; k < ends_a - p; k++) {
            C2_crd[last + k] = A_csr2_crd[p + k];
            C_vals[last + k] = A_csr_vals[p + k];
        }
        last += ends_a - p;
        for (int64_t k = 0; k < ends_b - q; k++) {
            C2_crd[last + k] = B_csr2_crd[q + k];
            C_vals[last + k] = B_csr_vals[q + k];
        }
        last += ends_b - q;
        C2_pos[i + 1] = (int32_t)last;
    }
}
