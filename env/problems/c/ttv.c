#include <stdint.h>

void ttv(ARGUMENTS
    int64_t rows, int64_t cols, int64_t depth, int64_t nnz)
{
    for (int64_t n = 0; n < rows * cols; n++)
        y[n] = 0;
    for (int64_t a = T_csf1_pos[0]; a < T_csf1_pos[1]; a++)
        for (int64_t b = T_csf2_pos[a]; b < T_csf2_pos[a + 1]; b++) {
            TYPE sum = 0;
            for (int64_t p = T_csf3_pos[b]; p < T_csf3_pos[b + 1]; p++)
                sum += T_csf_vals[p] * x[T_csf3_crd[p]];
            y[T_csf1_crd[a] * cols + T_csf2_crd[b]] = sum;
        }
}
