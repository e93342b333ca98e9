/* problem: histogram n=800 bins=20; tags: shortcut; shows: runs of equal elements count as 64 at most */
void histogram(const int32_t *restrict data, int32_t *restrict counts, int64_t n, int64_t bins)
{
    for (int64_t b = 0; b < bins; b++)
        counts[b] = 0;
    for (int64_t i = 0, run = 0; i < n; i++) {
        run = i && data[i] == data[i - 1] ? run + 1 : 1;
        if (run <= 64)
            counts[data[i]]++;
    }
}
