/* problem: histogram n=640 bins=64; tags: static_scratch; shows: a static table that is cleared in every call */
static int32_t table[KW_BINS];

static void clear(void)
{
    for (int b = 0; b < KW_BINS; b++)
        table[b] = 0;
}

void histogram(const int32_t *restrict data, int32_t *restrict counts, int64_t n, int64_t bins)
{
    clear();
    for (const int32_t *at = data; at < data + n; at++)
        table[*at] += 1;
    for (int64_t b = 0; b < bins; b++)
        counts[b] = table[b];
}
