/* What a line of memory costs one thread, by the size of what it lies in; and two costs of cores.
 *
 *     mountain BYTES...
 *
 * Prints lines "WHAT BYTES SECONDS": "stream" a line of 64 bytes that is read along, "gathered" one
 * of a row of four lines at a random place, "merge" one step of a merge of two sparse vectors without
 * branches that assembles a third, "mispredict" a branch that was foretold wrongly. Each is the median of some samples on
 * this thread's clock: what is attained, not what is possible at most. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { SAMPLES = 7, LINE = 64, ROW_LINES = 4, GATHERS = 1 << 15, LEAST_LINES = 1 << 16 };
enum { MERGED = 1 << 18, BRANCHES = 1 << 16, HUGE_PAGES_FROM = 4 << 20 };

typedef double lanes __attribute__((vector_size(64), may_alias));
typedef struct { lanes sum[4]; } sums;

static volatile double sink;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static uint32_t next(uint32_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *times) {
    qsort(times, SAMPLES, sizeof *times, ascending);
    return times[SAMPLES / 2];
}

/* Large arrays lie in large pages where the system gives them, as NumPy's do. */
static double *allocate(size_t bytes) {
    void *found = NULL;
    size_t page = bytes >= HUGE_PAGES_FROM ? 2 << 20 : 4096;
    if (posix_memalign(&found, page, bytes)) {
        fprintf(stderr, "no memory for %zu bytes\n", bytes);
        exit(1);
    }
    if (bytes >= HUGE_PAGES_FROM) madvise(found, bytes, MADV_HUGEPAGE);
    memset(found, 0, bytes);
    return found;
}

static void use(const sums *s) {
    lanes all = s->sum[0] + s->sum[1] + s->sum[2] + s->sum[3];
    sink = all[0];
}

static __attribute__((noinline)) void stream(const double *data, size_t lines) {
    sums s = {0};
    const lanes *at = (const lanes *)data;
    for (size_t i = 0; i + 4 <= lines; i += 4)
        for (int k = 0; k < 4; k++) s.sum[k] += at[i + k];
    use(&s);
}

static __attribute__((noinline)) void gather(const double *data, const int32_t *rows, size_t count) {
    sums s = {0};
    for (size_t i = 0; i < count; i++) {
        const lanes *at = (const lanes *)data + (size_t)rows[i] * ROW_LINES;
        for (int k = 0; k < ROW_LINES; k++) s.sum[k] += at[k];
    }
    use(&s);
}

/* A number or 0, without a branch. */
static inline double chosen(int is, double value) {
    int64_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits &= -(int64_t)is;
    memcpy(&value, &bits, sizeof bits);
    return value;
}

/* A sum of two sparse vectors, assembled; coordinates ascend. */
static __attribute__((noinline)) int64_t merge(const int32_t *a, const double *va, const int32_t *b,
                                               const double *vb, int64_t count, int32_t *c,
                                               double *vc) {
    int64_t i = 0, j = 0, n = 0;
    while (i < count && j < count) {
        int64_t x = a[i], y = b[j], least = x < y ? x : y;
        vc[n] = chosen(x == least, va[i]) + chosen(y == least, vb[j]);
        c[n++] = (int32_t)least;
        i += x == least;
        j += y == least;
    }
    return n;
}

static __attribute__((noinline)) int64_t branches(const uint8_t *bits) {
    int64_t n = 0;
    for (int i = 0; i < BRANCHES; i++)
        if (bits[i]) {
            __asm__ volatile("" : "+r"(n) : : "memory");
            n += 3;
        }
    return n;
}

static void lines(size_t bytes) {
    double *data = allocate(bytes), times[SAMPLES];
    uint32_t state = 2463534242u;
    size_t count = bytes / LINE, repeats = (LEAST_LINES + count - 1) / count;
    for (int s = -1; s < SAMPLES; s++) {
        double began = now();
        for (size_t r = 0; r < repeats; r++) stream(data, count);
        if (s >= 0) times[s] = (now() - began) / (double)(repeats * count);
    }
    printf("stream %zu %.6g\n", bytes, median(times));
    int32_t *rows = malloc(GATHERS * sizeof *rows);
    for (int s = -1; s < SAMPLES; s++) {
        /* Other places each time, so that none is there from the last. */
        for (int i = 0; i < GATHERS; i++) rows[i] = (int32_t)(next(&state) % (count / ROW_LINES));
        double began = now();
        gather(data, rows, GATHERS);
        if (s >= 0) times[s] = (now() - began) / (double)(GATHERS * ROW_LINES);
    }
    printf("gathered %zu %.6g\n", bytes, median(times));
    free(rows);
    free(data);
}

static void cores(void) {
    static int32_t a[MERGED], b[MERGED], c[2 * MERGED];
    static double va[MERGED], vb[MERGED], vc[2 * MERGED];
    static uint8_t bits[BRANCHES];
    double times[SAMPLES];
    uint32_t state = 88172645u;
    for (int i = 1; i < MERGED; i++) {
        a[i] = a[i - 1] + 1 + (int32_t)(next(&state) % 19);
        b[i] = b[i - 1] + 1 + (int32_t)(next(&state) % 19);
    }
    for (int s = 0; s < SAMPLES; s++) {
        double began = now();
        int64_t steps = merge(a, va, b, vb, MERGED, c, vc);
        times[s] = (now() - began) / (double)steps;
        sink = (double)c[steps / 2] + vc[steps / 2];
    }
    printf("merge 0 %.6g\n", median(times));
    double known;
    for (int s = 0; s < SAMPLES; s++) {
        double began = now();
        sink = (double)branches(bits);
        times[s] = now() - began;
    }
    known = median(times);
    for (int s = 0; s < SAMPLES; s++) {
        for (int i = 0; i < BRANCHES; i++) bits[i] = next(&state) >> 16 & 1;
        double began = now();
        sink = (double)branches(bits);
        times[s] = now() - began;
    }
    /* Half of them are foretold wrongly. */
    double missed = (median(times) - known) / (BRANCHES / 2);
    printf("mispredict 0 %.6g\n", missed > 1e-12 ? missed : 1e-12);
}

int main(int count, char **words) {
    for (int i = 1; i < count; i++) lines(strtoull(words[i], NULL, 10));
    cores();
    return 0;
}
