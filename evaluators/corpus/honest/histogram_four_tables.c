/* problem: histogram n=1003 bins=50; shows: four tables on the stack, so that neighbours do not wait for each other */
#include <string.h>

void histogram(const int32_t *restrict data, int32_t *restrict counts, int64_t n, int64_t bins)
{
    int32_t table[4][KW_BINS];
    memset(table, 0, sizeof table);
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (int q = 0; q < 4; q++)
            table[q][data[i + q]]++;
    for (; i < n; i++)
        table[0][data[i]]++;
    for (int64_t b = 0; b < bins; b++)
        counts[b] = table[0][b] + table[1][b] + table[2][b] + table[3][b];
}
