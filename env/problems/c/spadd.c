#include <stdint.h>

void spadd(ARGUMENTS
    int64_t rows, int64_t cols, int64_t nnz)
{
    int64_t last = 0;
    C2_pos[0] = 0;
    for (int64_t i = 0; i < rows; i++) {
        int64_t p = A_csr2_pos[i], q = B_csr2_pos[i];
        while (p < A_csr2_pos[i + 1] || q < B_csr2_pos[i + 1]) {
            int64_t ja = p < A_csr2_pos[i + 1] ? A_csr2_crd[p] : cols;
            int64_t jb = q < B_csr2_pos[i + 1] ? B_csr2_crd[q] : cols;
            TYPE sum = 0;
            C2_crd[last] = (int32_t)(ja < jb ? ja : jb);
            if (ja <= jb)
                sum += A_csr_vals[p++];
            if (jb <= ja)
                sum += B_csr_vals[q++];
            C_vals[last++] = sum;
        }
        C2_pos[i + 1] = (int32_t)last;
    }
}
