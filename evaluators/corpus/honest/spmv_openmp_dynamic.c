/* problem: spmv rows=80 cols=70 nnz=900; flags: -fopenmp; threads: 2; tags: openmp; shows: rows of different length dealt out dynamically */
void spmv(const int32_t *restrict pos, const int32_t *restrict crd, const float *restrict vals,
          const float *restrict x, float *restrict y, int64_t rows, int64_t cols, int64_t nnz)
{
#pragma omp parallel for schedule(dynamic, 8)
    for (int64_t i = 0; i < rows; i++) {
        float sum = 0;
        for (int64_t p = pos[i]; p < pos[i + 1]; p++)
            sum += vals[p] * x[crd[p]];
        y[i] = sum;
    }
}
