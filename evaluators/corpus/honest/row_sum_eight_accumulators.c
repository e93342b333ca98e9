/* problem: row_sum rows=21 cols=203; tags: reassociated; shows: eight sums side by side, tail added last */
void row_sum(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        const float *row = x + i * cols;
        float part[8] = {0};
        int64_t j = 0;
        for (; j + 8 <= cols; j += 8)
            for (int q = 0; q < 8; q++)
                part[q] += row[j + q];
        float sum = ((part[0] + part[1]) + (part[2] + part[3])) +
                    ((part[4] + part[5]) + (part[6] + part[7]));
        for (; j < cols; j++)
            sum += row[j];
        y[i] = sum;
    }
}
