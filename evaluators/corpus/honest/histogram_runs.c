/* problem: histogram n=850 bins=12; shows: equal neighbours are counted as one run */
void histogram(const int32_t *restrict data, int32_t *restrict counts, int64_t n, int64_t bins)
{
    for (int64_t b = 0; b < bins; b++)
        counts[b] = 0;
    for (int64_t i = 0; i < n;) {
        int64_t end = i + 1;
        while (end < n && data[end] == data[i])
            end++;
        counts[data[i]] += (int32_t)(end - i);
        i = end;
    }
}
