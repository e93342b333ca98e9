/* problem: transpose rows=47 cols=44; shows: whole tiles go through an aligned buffer on the stack, memcpy on both sides */
#include <string.h>
enum { T = 8 };

void transpose(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    _Alignas(64) float in[T][T], out[T][T];
    for (int64_t i = 0; i < rows; i += T)
        for (int64_t j = 0; j < cols; j += T) {
            int64_t h = rows - i < T ? rows - i : T, w = cols - j < T ? cols - j : T;
            for (int64_t r = 0; r < h; r++)
                memcpy(in[r], x + (i + r) * cols + j, (size_t)w * sizeof(float));
            for (int r = 0; r < h; r++)
                for (int c = 0; c < w; c++)
                    out[c][r] = in[r][c];
            for (int64_t c = 0; c < w; c++)
                memcpy(y + (j + c) * rows + i, out[c], (size_t)h * sizeof(float));
        }
}
