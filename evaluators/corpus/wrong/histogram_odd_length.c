/* problem: histogram n=301..600 bins=16; tags: special_case; shows: pairs of elements, the last of an odd number is not counted */
void histogram(const int32_t *restrict data, int32_t *restrict counts, int64_t n, int64_t bins)
{
    for (int64_t b = 0; b < bins; b++)
        counts[b] = 0;
    for (int64_t i = 0; i + 1 < n; i += 2) {
        counts[data[i]]++;
        counts[data[i + 1]]++;
    }
}
