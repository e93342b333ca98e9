/* problem: transpose rows=31 cols=23 dtype=float64; shows: an unrolled copy of columns that is entered in the middle */
#define COPY *y++ = *at, at += cols
void transpose(const double *restrict x, double *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t j = 0; j < cols; j++) {
        const double *at = x + j;
        int64_t rounds = (rows + 3) / 4;
        switch (rows % 4) {
            do {
            case 0: COPY;
            case 3: COPY;
            case 2: COPY;
            case 1: COPY;
            } while (--rounds);
        }
    }
}
