/* The schedules of a separable blur and of a chain of four 3x3 boxes, written by hand, to compare generated
 * code with. Row-major float32; the output is w x h; `scratch` holds whatever the schedule keeps. Compile with
 * the flags of the generated code. */
#include <stdint.h>

#define THIRD (1.0f / 3.0f)
#define NINTH (1.0f / 9.0f)
#define TILE 64
#define MOST_STRIP 32

static inline void across(const float *restrict in, float *restrict out, int64_t w) {
    for (int64_t x = 0; x < w; x++) out[x] = (in[x] + in[x + 1] + in[x + 2]) * THIRD;
}

static inline void down(const float *restrict a, const float *restrict b, const float *restrict c,
                        float *restrict out, int64_t w) {
    for (int64_t x = 0; x < w; x++) out[x] = (a[x] + b[x] + c[x]) * THIRD;
}

void blur_root(const float *restrict in, float *restrict out, float *restrict scratch, int64_t w, int64_t h) {
    for (int64_t y = 0; y < h + 2; y++) across(in + y * (w + 2), scratch + y * w, w);
    for (int64_t y = 0; y < h; y++)
        down(scratch + y * w, scratch + (y + 1) * w, scratch + (y + 2) * w, out + y * w, w);
}

void blur_inline(const float *restrict in, float *restrict out, float *restrict scratch, int64_t w, int64_t h) {
    (void)scratch;
    for (int64_t y = 0; y < h; y++) {
        const float *restrict a = in + y * (w + 2), *restrict b = a + w + 2, *restrict c = b + w + 2;
        float *restrict to = out + y * w;
        for (int64_t x = 0; x < w; x++)
            to[x] = ((a[x] + a[x + 1] + a[x + 2]) * THIRD + (b[x] + b[x + 1] + b[x + 2]) * THIRD +
                     (c[x] + c[x + 1] + c[x + 2]) * THIRD) * THIRD;
    }
}

void blur_tiles(const float *restrict in, float *restrict out, float *restrict scratch, int64_t w, int64_t h) {
    (void)scratch;
    float rows[(TILE + 2) * TILE] __attribute__((aligned(64)));
    for (int64_t ty = 0; ty < h; ty += TILE)
        for (int64_t tx = 0; tx < w; tx += TILE) {
            for (int64_t y = 0; y < TILE + 2; y++) across(in + (ty + y) * (w + 2) + tx, rows + y * TILE, TILE);
            for (int64_t y = 0; y < TILE; y++)
                down(rows + y * TILE, rows + (y + 1) * TILE, rows + (y + 2) * TILE, out + (ty + y) * w + tx, TILE);
        }
}

static inline void blur_strips(const float *restrict in, float *restrict out, float *restrict scratch,
                               int64_t w, int64_t h, int64_t strip) {
    for (int64_t ty = 0; ty < h; ty += strip) {
        for (int64_t y = 0; y < strip + 2; y++) across(in + (ty + y) * (w + 2), scratch + y * w, w);
        for (int64_t y = 0; y < strip; y++)
            down(scratch + y * w, scratch + (y + 1) * w, scratch + (y + 2) * w, out + (ty + y) * w, w);
    }
}

void blur_strips_8(const float *restrict in, float *restrict out, float *restrict scratch, int64_t w, int64_t h) {
    blur_strips(in, out, scratch, w, h, 8);
}

void blur_strips_32(const float *restrict in, float *restrict out, float *restrict scratch, int64_t w, int64_t h) {
    blur_strips(in, out, scratch, w, h, 32);
}

static inline void blur_window(const float *restrict in, float *restrict out, float *restrict scratch,
                               int64_t w, int64_t h) {
    across(in, scratch, w);
    across(in + w + 2, scratch + w, w);
    for (int64_t y = 0; y < h; y++) {
        across(in + (y + 2) * (w + 2), scratch + (y + 2) % 3 * w, w);
        down(scratch + y % 3 * w, scratch + (y + 1) % 3 * w, scratch + (y + 2) % 3 * w, out + y * w, w);
    }
}

void blur_sliding(const float *restrict in, float *restrict out, float *restrict scratch, int64_t w, int64_t h) {
    blur_window(in, out, scratch, w, h);
}

void blur_strips_sliding(const float *restrict in, float *restrict out, float *restrict scratch, int64_t w,
                         int64_t h) {
    for (int64_t ty = 0; ty < h; ty += MOST_STRIP)
        blur_window(in + ty * (w + 2), out + ty * w, scratch, w, MOST_STRIP);
}

static inline void box(const float *restrict a, const float *restrict b, const float *restrict c,
                       float *restrict out, int64_t w) {
    for (int64_t x = 0; x < w; x++)
        out[x] = (a[x] + a[x + 1] + a[x + 2] + b[x] + b[x + 1] + b[x + 2] + c[x] + c[x + 1] + c[x + 2]) * NINTH;
}

/* `h` rows of a box of `w` columns over rows that are `pitch` apart. */
static inline void boxes(const float *restrict in, int64_t pitch, float *restrict out, int64_t out_pitch,
                         int64_t w, int64_t h) {
    for (int64_t y = 0; y < h; y++) {
        const float *restrict row = in + y * pitch;
        box(row, row + pitch, row + 2 * pitch, out + y * out_pitch, w);
    }
}

static inline void box4_part(const float *restrict in, int64_t pitch, float *restrict out, int64_t out_pitch,
                             float *restrict scratch, int64_t w, int64_t h) {
    float *restrict a = scratch, *restrict b = a + (w + 6) * (h + 6), *restrict c = b + (w + 4) * (h + 4);
    boxes(in, pitch, a, w + 6, w + 6, h + 6);
    boxes(a, w + 6, b, w + 4, w + 4, h + 4);
    boxes(b, w + 4, c, w + 2, w + 2, h + 2);
    boxes(c, w + 2, out, out_pitch, w, h);
}

/* A stage at sixteen places, of the one before: all four in one expression. As plain floats gcc does
   not vectorise it, which would be a hundred times slower. */
typedef float lanes __attribute__((vector_size(64), aligned(4), may_alias));
#define INLINE static inline __attribute__((always_inline)) lanes
#define BOX(f) \
    ((f(p, s) + f(p + 1, s) + f(p + 2, s) + f(p + s, s) + f(p + s + 1, s) + f(p + s + 2, s) + \
      f(p + 2 * s, s) + f(p + 2 * s + 1, s) + f(p + 2 * s + 2, s)) * NINTH)
INLINE box_0(const float *p, int64_t s) { (void)s; return *(const lanes *)p; }
INLINE box_1(const float *p, int64_t s) { return BOX(box_0); }
INLINE box_2(const float *p, int64_t s) { return BOX(box_1); }
INLINE box_3(const float *p, int64_t s) { return BOX(box_2); }
INLINE box_4(const float *p, int64_t s) { return BOX(box_3); }

void box4_inline(const float *restrict in, float *restrict out, float *restrict scratch, int64_t w, int64_t h) {
    (void)scratch;
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x += 16) *(lanes *)(out + y * w + x) = box_4(in + y * (w + 8) + x, w + 8);
}

void box4_root(const float *restrict in, float *restrict out, float *restrict scratch, int64_t w, int64_t h) {
    box4_part(in, w + 8, out, w, scratch, w, h);
}

void box4_tiles(const float *restrict in, float *restrict out, float *restrict scratch, int64_t w, int64_t h) {
    for (int64_t ty = 0; ty < h; ty += TILE)
        for (int64_t tx = 0; tx < w; tx += TILE)
            box4_part(in + ty * (w + 8) + tx, w + 8, out + ty * w + tx, w, scratch, TILE, TILE);
}

void box4_strips_8(const float *restrict in, float *restrict out, float *restrict scratch, int64_t w, int64_t h) {
    for (int64_t ty = 0; ty < h; ty += 8) box4_part(in + ty * (w + 8), w + 8, out + ty * w, w, scratch, w, 8);
}

void box4_strips_32(const float *restrict in, float *restrict out, float *restrict scratch, int64_t w, int64_t h) {
    for (int64_t ty = 0; ty < h; ty += 32) box4_part(in + ty * (w + 8), w + 8, out + ty * w, w, scratch, w, 32);
}

/* A row of a stage from the ring of the one before: rows y, y + 1 and y + 2. */
static inline void ring(const float *restrict from, int64_t from_w, int64_t from_rows, float *restrict to, int64_t w,
                        int64_t rows, int64_t y) {
    box(from + y % from_rows * from_w, from + (y + 1) % from_rows * from_w, from + (y + 2) % from_rows * from_w,
        to + y % rows * w, w);
}

static inline void box4_window(const float *restrict in, float *restrict out, float *restrict scratch, int64_t w,
                               int64_t h) {
    float *restrict a = scratch, *restrict b = a + 6 * (w + 6), *restrict c = b + 4 * (w + 4);
    for (int64_t y = 0; y < 6; y++)
        box(in + y * (w + 8), in + (y + 1) * (w + 8), in + (y + 2) * (w + 8), a + y * (w + 6), w + 6);
    for (int64_t y = 0; y < 4; y++) ring(a, w + 6, 6, b, w + 4, 4, y);
    for (int64_t y = 0; y < 2; y++) ring(b, w + 4, 4, c, w + 2, 3, y);
    for (int64_t y = 0; y < h; y++) {
        const float *restrict row = in + (y + 6) * (w + 8);
        box(row, row + w + 8, row + 2 * (w + 8), a + (y + 6) % 6 * (w + 6), w + 6);
        ring(a, w + 6, 6, b, w + 4, 4, y + 4);
        ring(b, w + 4, 4, c, w + 2, 3, y + 2);
        box(c + y % 3 * (w + 2), c + (y + 1) % 3 * (w + 2), c + (y + 2) % 3 * (w + 2), out + y * w, w);
    }
}

void box4_sliding(const float *restrict in, float *restrict out, float *restrict scratch, int64_t w, int64_t h) {
    box4_window(in, out, scratch, w, h);
}

void box4_strips_sliding(const float *restrict in, float *restrict out, float *restrict scratch, int64_t w,
                         int64_t h) {
    for (int64_t ty = 0; ty < h; ty += MOST_STRIP)
        box4_window(in + ty * (w + 8), out + ty * w, scratch, w, MOST_STRIP);
}
