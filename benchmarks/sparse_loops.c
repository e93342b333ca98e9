/* The plain loops of sparse kernels over CSR and CSF, float64 and int32 indices, as a C programmer
   writes them first: what generated code is measured against where no library computes the kernel. */

#include <stdint.h>

/* Reads a matrix as fast as it can be read and computes nothing: no product takes less. */
void stream(const int32_t *restrict crd, const double *restrict vals, double *restrict out, int64_t count) {
    typedef double lanes __attribute__((vector_size(64), aligned(8)));
    typedef int32_t places __attribute__((vector_size(32), aligned(4)));
    lanes sum = {0};
    places mixed = {0};
    for (int64_t p = 0; p + 8 <= count; p += 8) {
        sum += *(const lanes *)(vals + p);
        mixed ^= *(const places *)(crd + p);
    }
    out[0] = sum[0] + sum[1] + sum[2] + sum[3] + sum[4] + sum[5] + sum[6] + sum[7] + mixed[0] + mixed[1] + mixed[2] +
             mixed[3] + mixed[4] + mixed[5] + mixed[6] + mixed[7];
}

void sddmm(const int32_t *restrict pos, const int32_t *restrict crd, const double *restrict vals,
           const double *restrict x, const double *restrict y, double *restrict out, int64_t rows, int64_t width) {
    for (int64_t i = 0; i < rows; i++)
        for (int64_t p = pos[i]; p < pos[i + 1]; p++) {
            double sum = 0;
            for (int64_t k = 0; k < width; k++)
                sum += x[i * width + k] * y[crd[p] * width + k];
            out[p] = vals[p] * sum;
        }
}

void mttkrp(const int32_t *restrict pos1, const int32_t *restrict crd1, const int32_t *restrict pos2,
            const int32_t *restrict crd2, const int32_t *restrict pos3, const int32_t *restrict crd3,
            const double *restrict vals, const double *restrict c, const double *restrict d, double *restrict out,
            int64_t rows, int64_t rank) {
    for (int64_t n = 0; n < rows * rank; n++)
        out[n] = 0;
    for (int64_t a = pos1[0]; a < pos1[1]; a++)
        for (int64_t b = pos2[a]; b < pos2[a + 1]; b++)
            for (int64_t p = pos3[b]; p < pos3[b + 1]; p++)
                for (int64_t r = 0; r < rank; r++)
                    out[crd1[a] * rank + r] += vals[p] * c[crd2[b] * rank + r] * d[crd3[p] * rank + r];
}
