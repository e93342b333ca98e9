/* problem: histogram n=1200 bins=33; threads: 2; tags: openmp; shows: a reduction over an array section */
void histogram(const int32_t *restrict data, int32_t *restrict counts, int64_t n, int64_t bins)
{
    int32_t table[KW_BINS] = {0};
#pragma omp parallel for reduction(+ : table[:KW_BINS])
    for (int64_t i = 0; i < n; i++)
        table[data[i]]++;
    for (int64_t b = 0; b < bins; b++)
        counts[b] = table[b];
}
