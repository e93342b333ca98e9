/* problem: histogram n=2000 bins=100; shows: counters of eight bits, emptied into the output after 255 elements */
void histogram(const int32_t *restrict data, int32_t *restrict counts, int64_t n, int64_t bins)
{
    uint8_t small[KW_BINS] = {0};
    for (int64_t b = 0; b < bins; b++)
        counts[b] = 0;
    for (int64_t start = 0; start < n; start += 255) {
        int64_t end = start + 255 < n ? start + 255 : n;
        for (int64_t i = start; i < end; i++)
            small[data[i]]++;
        for (int64_t b = 0; b < bins; b++) {
            counts[b] += small[b];
            small[b] = 0;
        }
    }
}
