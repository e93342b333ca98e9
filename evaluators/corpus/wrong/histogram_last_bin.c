/* problem: histogram n=600 bins=16; tags: special_case; shows: the last bin is what the others leave of the length, less one */
void histogram(const int32_t *restrict data, int32_t *restrict counts, int64_t n, int64_t bins)
{
    for (int64_t b = 0; b < bins; b++)
        counts[b] = 0;
    for (int64_t i = 0; i < n; i++)
        counts[data[i]]++;
    counts[bins - 1] -= counts[bins - 1] > 0;
}
