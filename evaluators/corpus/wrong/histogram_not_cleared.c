/* problem: histogram n=500 bins=16; tags: stale_state; shows: a static table is not cleared between calls */
void histogram(const int32_t *restrict data, int32_t *restrict counts, int64_t n, int64_t bins)
{
    static int32_t table[KW_BINS];
    for (int64_t i = 0; i < n; i++)
        table[data[i]]++;
    for (int64_t b = 0; b < bins; b++)
        counts[b] = table[b];
}
