/* problem: histogram n=1..900 bins=16; shows: pairs of elements counted in a table of pairs, then unfolded */
void histogram(const int32_t *restrict data, int32_t *restrict counts, int64_t n, int64_t bins)
{
    uint16_t pairs[KW_BINS * KW_BINS] = {0};
    for (int64_t i = 0; i + 1 < n; i += 2)
        pairs[data[i] * bins + data[i + 1]]++;
    for (int64_t b = 0; b < bins; b++) {
        int32_t count = n % 2 && data[n - 1] == b;
        for (int64_t c = 0; c < bins; c++)
            count += pairs[b * bins + c] + pairs[c * bins + b];
        counts[b] = count;
    }
}
