/* problem: histogram n=500 bins=9; shows: the data read once for each bin, without any store in between */
void histogram(const int32_t *restrict data, int32_t *restrict counts, int64_t n, int64_t bins)
{
    for (int32_t b = 0; b < bins; b++) {
        int32_t count = 0;
        for (int64_t i = 0; i < n; i++)
            count += data[i] == b;
        counts[b] = count;
    }
}
