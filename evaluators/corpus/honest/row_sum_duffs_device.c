/* problem: row_sum rows=13 cols=59; shows: Duff's device, in order */
void row_sum(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        float sum = 0;
        int64_t rounds = (cols + 7) / 8;
        switch (cols % 8) {
        case 0:
            do {
                sum += *x++;
        case 7:
                sum += *x++;
        case 6:
                sum += *x++;
        case 5:
                sum += *x++;
        case 4:
                sum += *x++;
        case 3:
                sum += *x++;
        case 2:
                sum += *x++;
        case 1:
                sum += *x++;
            } while (--rounds > 0);
        }
        y[i] = sum;
    }
}
