/* problem: blur h=14 w=48; shows: eight columns at a time in unaligned GCC vectors */
typedef float v8 __attribute__((vector_size(32), aligned(4), may_alias));
#define AT(p) (*(const v8 *)(p))

void blur(const float *restrict image, float *restrict out, int64_t h, int64_t w)
{
    for (int64_t x = 0; x < w; x += 8) {
        const float *p = image + x;
        v8 a = (AT(p) + AT(p + 1) + AT(p + 2)) / 3;
        p += w + 2;
        v8 b = (AT(p) + AT(p + 1) + AT(p + 2)) / 3;
        for (int64_t y = 0; y < h; y++) {
            p += w + 2;
            v8 c = (AT(p) + AT(p + 1) + AT(p + 2)) / 3;
            *(v8 *)(out + y * w + x) = (a + b + c) / 3;
            a = b;
            b = c;
        }
    }
}
