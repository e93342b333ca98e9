/* problem: spadd rows=20 cols=30 nnz=170 matrix=uniform_rows formats=csr; shows: sums in double, tails of rows copied */
#include <string.h>

void spadd(const int32_t *restrict A_csr2_pos, const int32_t *restrict A_csr2_crd,
           const float *restrict A_csr_vals,
           const int32_t *restrict B_csr2_pos, const int32_t *restrict B_csr2_crd,
           const float *restrict B_csr_vals,
           int32_t *restrict C2_pos, int32_t *restrict C2_crd, float *restrict C_vals,
           int64_t rows, int64_t cols, int64_t nnz)
{
    int64_t last = 0;
    C2_pos[0] = 0;
    for (int64_t i = 0; i < rows; i++) {
        int64_t p = A_csr2_pos[i], q = B_csr2_pos[i];
        const int64_t ends_a = A_csr2_pos[i + 1], ends_b = B_csr2_pos[i + 1];
        while (p < ends_a && q < ends_b) {
            int32_t ja = A_csr2_crd[p], jb = B_csr2_crd[q];
            double sum = 0;
            if (ja <= jb)
                sum += A_csr_vals[p++];
            if (jb <= ja)
                sum += B_csr_vals[q++];
            C2_crd[last] = ja < jb ? ja : jb;
            C_vals[last++] = (float)sum;
        }
        memcpy(C2_crd + last, A_csr2_crd + p, (size_t)(ends_a - p) * sizeof *C2_crd);
        memcpy(C_vals + last, A_csr_vals + p, (size_t)(ends_a - p) * sizeof *C_vals);
        last += ends_a - p;
        memcpy(C2_crd + last, B_csr2_crd + q, (size_t)(ends_b - q) * sizeof *C2_crd);
        memcpy(C_vals + last, B_csr_vals + q, (size_t)(ends_b - q) * sizeof *C_vals);
        last += ends_b - q;
        C2_pos[i + 1] = (int32_t)last;
    }
}
