/* problem: histogram n=2000 bins=16; tags: overflow; shows: counters of eight bits wrap */
void histogram(const int32_t *restrict data, int32_t *restrict counts, int64_t n, int64_t bins)
{
    uint8_t small[KW_BINS] = {0};
    for (int64_t i = 0; i < n; i++)
        small[data[i]]++;
    for (int64_t b = 0; b < bins; b++)
        counts[b] = small[b];
}
