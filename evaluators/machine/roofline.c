/* What one CPU, or several at once, do at most: arithmetic, memory traffic, clock and timer.
 *
 *     roofline CPU[,CPU...] [LEVEL BYTES EVICTED]...
 *
 * One process is pinned to each CPU, and they start every sample together. LEVEL names the level of
 * memory that a working set of BYTES (of each process) fills; with EVICTED 1 it is evicted from all
 * caches before each sample. Prints lines "WHAT WHICH VALUE"; rates are a second and of all CPUs
 * together, but for the clock, which is one CPU's.
 *
 * What is wanted is an upper bound: a kernel that beats it is called impossible. So a rate is that
 * of the best sample, and whoever reads the lines takes the greatest of those that are alike.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __SSE2__
#include <immintrin.h>
#endif

/* The widest vector in bytes. */
#if defined(__AVX512F__)
#define WIDEST 64
#elif defined(__AVX__)
#define WIDEST 32
#else
#define WIDEST 16
#endif

/* Independent chains of operations: more than latency times pipes, and no more than there are
 * registers for. Where both kinds do not fit, what is enough differs from core to core: OTHER has
 * more of adds. STEPS, the multiply-adds of one pass, goes round every number of chains. */
#if defined(__AVX512F__) || defined(__aarch64__)
enum { ADDS = 24, FMAS = 24, MIX_FMAS = 12, MIX_ADDS = 12, OTHER_FMAS = 12, OTHER_ADDS = 15 };
#else
enum { ADDS = 14, FMAS = 12, MIX_FMAS = 10, MIX_ADDS = 4, OTHER_FMAS = 8, OTHER_ADDS = 6 };
#endif
enum { STEPS = 120, NEVER = STEPS + 1 };

/* A sample is long beside the timer's resolution and short beside a scheduler's slice, so that some
 * of many are undisturbed. Of evicted data a sample is one pass; of many of them it is long, and
 * there are few. */
static const double SAMPLE_S = 60e-6, BUDGET_S = 5e-3;
enum { SAMPLES = 12, FEW_SAMPLES = 4, MANY_BYTES = 4 << 20 };

#ifdef __clang__
#define UNROLLED _Pragma("unroll")
#else
#define UNROLLED _Pragma("GCC unroll 120")
#endif

/* Has the compiler believe that memory is read and written here. */
#define BARRIER() __asm__ volatile("" : : : "memory")
static volatile uint64_t sink;

/* What is done, `passes` times, with `bytes` of memory where it needs any. */
typedef struct {
    char *data;
    size_t bytes;
} Place;
typedef void Work(Place place, long passes);

/* Processes that do the same at the same time */

static struct {
    int count, arrived, turn, more, samples;
    long passes;
    double rate;
    struct {
        double begin_s, end_s;
    } sample[];
} *team;
static int me;

/* Since the program started, because a double has no room for nanoseconds of a year. */
static time_t started_s;

static double now_s(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (at.tv_sec - started_s) + 1e-9 * at.tv_nsec;
}

static void wait_for_all(void)
{
    int turn = __atomic_load_n(&team->turn, __ATOMIC_ACQUIRE);
    if (__atomic_add_fetch(&team->arrived, 1, __ATOMIC_ACQ_REL) == team->count) {
        __atomic_store_n(&team->arrived, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&team->turn, turn + 1, __ATOMIC_RELEASE);
    }
    while (__atomic_load_n(&team->turn, __ATOMIC_ACQUIRE) == turn) {
#ifdef __SSE2__
        _mm_pause();
#endif
    }
}

/* Evict an array from every cache. Where there is no instruction for it, the working set must be
 * larger than the caches; a smaller one then gives a rate that is too high, which errs safely. */
static void evict(Place place)
{
#if defined(__SSE2__)
    for (size_t at = 0; at < place.bytes; at += 64)
#ifdef __CLFLUSHOPT__
        _mm_clflushopt(place.data + at);
#else
        _mm_clflush(place.data + at);
#endif
    _mm_mfence();
#elif defined(__aarch64__)
    for (size_t at = 0; at < place.bytes; at += 16)
        __asm__ volatile("dc civac, %0" : : "r"(place.data + at) : "memory");
    __asm__ volatile("dsb sy" : : : "memory");
#else
    (void)place;
#endif
}

/* Take one sample; whether another is wanted. Only the first process decides. */
static int is_more(double amount, int evicted, int wanted, double until_s)
{
    double begin_s = team->sample[0].begin_s, end_s = team->sample[0].end_s;
    for (int i = 1; i < team->count; i++) {
        begin_s = team->sample[i].begin_s < begin_s ? team->sample[i].begin_s : begin_s;
        end_s = team->sample[i].end_s > end_s ? team->sample[i].end_s : end_s;
    }
    double taken_s = end_s - begin_s;
    if (!evicted && taken_s < SAMPLE_S) {
        team->passes *= 2;
        return 1;
    }
    double rate = amount * team->passes * team->count / taken_s;
    if (taken_s > 0 && rate > team->rate)
        team->rate = rate;
    return ++team->samples < wanted || now_s() < until_s;
}

/* The greatest rate of all processes together; `amount` is what one pass does. */
static double greatest(Work *work, Place place, double amount, int evicted)
{
    double until_s = now_s() + BUDGET_S;
    int wanted = evicted && place.bytes > MANY_BYTES ? FEW_SAMPLES : SAMPLES;
    if (!me) {
        team->rate = 0;
        team->passes = 1;
        team->samples = 0;
    }
    do {
        if (evicted)
            evict(place);
        wait_for_all();
        double begin_s = now_s();
        work(place, team->passes);
        double end_s = now_s();
        team->sample[me].begin_s = begin_s;
        team->sample[me].end_s = end_s;
        wait_for_all();
        if (!me)
            team->more = is_more(amount, evicted, wanted, until_s);
        wait_for_all();
    } while (team->more);
    return team->rate;
}

static void report(const char *what, const char *which, double value)
{
    if (!me)
        printf("%s %s %.17g\n", what, which, value);
}

/* Arithmetic */

static volatile double factor = 0.999, addend = 0.5;

/* STEPS multiply-adds, going round `f` chains, and after each `ratio` of them an add, going round
 * `a` chains: some cores have pipes for adds beside those for multiply-adds. */
#define FLOPS(name, type, width, f, ratio, a)                                                      \
    static void name##_##type##_##width(Place place, long passes)                                  \
    {                                                                                              \
        typedef type V __attribute__((vector_size(width)));                                        \
        V x[f], y[a], m = (V){0} + (type)factor, c = (V){0} + (type)addend;                        \
        (void)place;                                                                               \
        UNROLLED for (int i = 0; i < (f); i++) x[i] = c * (type)i;                                 \
        UNROLLED for (int i = 0; i < (a); i++) y[i] = c * (type)i;                                 \
        for (long pass = 0; pass < passes; pass++)                                                 \
            UNROLLED for (int i = 0; i < STEPS; i++)                                               \
            {                                                                                      \
                x[i % (f)] = x[i % (f)] * m + c;                                                   \
                if (i % (ratio) == (ratio) - 1)                                                    \
                    y[i / (ratio) % (a)] += c;                                                     \
            }                                                                                      \
        UNROLLED for (int i = 1; i < (f); i++) x[0] += x[i];                                       \
        UNROLLED for (int i = 0; i < (a); i++) x[0] += y[i];                                       \
        sink = (uint64_t)x[0][0];                                                                  \
    }

/* Chains of adds of whole numbers, each adding its neighbour: where that leads, no compiler can
 * say without doing it. */
#define INTEGER_ADDS(name, type, width, n)                                                         \
    static void name##_##type##_##width(Place place, long passes)                                  \
    {                                                                                              \
        typedef type V __attribute__((vector_size(width)));                                        \
        V x[n], c = (V){0} + (type)(4 * addend);                                                   \
        (void)place;                                                                               \
        UNROLLED for (int i = 0; i < (n); i++) x[i] = c + (type)i;                                 \
        for (long pass = 0; pass < passes; pass++)                                                 \
            UNROLLED for (int i = 0; i < (n); i++) x[i] += x[(i + 1) % (n)];                       \
        UNROLLED for (int i = 1; i < (n); i++) x[0] += x[i];                                       \
        sink = (uint64_t)x[0][0];                                                                  \
    }

#define FOR_FLOAT(type, width)                                                                     \
    FLOPS(fma, type, width, FMAS, NEVER, 1)                                                        \
    FLOPS(mix_2, type, width, MIX_FMAS, 2, MIX_ADDS)                                               \
    FLOPS(mix_1, type, width, MIX_FMAS, 1, MIX_ADDS)                                               \
    FLOPS(other_1, type, width, OTHER_FMAS, 1, OTHER_ADDS)
#define FOR_WIDTH(width)                                                                           \
    FOR_FLOAT(float, width)                                                                        \
    FOR_FLOAT(double, width)                                                                       \
    INTEGER_ADDS(add, uint8_t, width, ADDS)                                                        \
    INTEGER_ADDS(add, uint16_t, width, ADDS)                                                       \
    INTEGER_ADDS(add, uint32_t, width, ADDS)                                                       \
    INTEGER_ADDS(add, uint64_t, width, ADDS)

/* Narrower vectors too: wide ones may lower the clock, or take two turns. */
FOR_WIDTH(16)
#if WIDEST >= 32
FOR_WIDTH(32)
#endif
#if WIDEST >= 64
FOR_WIDTH(64)
#endif

#define OPERATIONS(ratio) (2 * STEPS + STEPS / (ratio))
#define FLOAT_AT(type, which, width)                                                               \
    {"fma", which, fma_##type##_##width, OPERATIONS(NEVER) * (width) / sizeof(type)},              \
    {"peak", which, fma_##type##_##width, OPERATIONS(NEVER) * (width) / sizeof(type)},             \
    {"peak", which, mix_2_##type##_##width, OPERATIONS(2) * (width) / sizeof(type)},               \
    {"peak", which, mix_1_##type##_##width, OPERATIONS(1) * (width) / sizeof(type)},               \
    {"peak", which, other_1_##type##_##width, OPERATIONS(1) * (width) / sizeof(type)}
#define INTEGER_AT(type, which, width)                                                             \
    {"add", which, add_##type##_##width, ADDS * (width) / sizeof(type)}
#define AT_WIDTH(width)                                                                            \
    FLOAT_AT(float, "float32", width), FLOAT_AT(double, "float64", width),                         \
    INTEGER_AT(uint8_t, "int8", width), INTEGER_AT(uint16_t, "int16", width),                      \
    INTEGER_AT(uint32_t, "int32", width), INTEGER_AT(uint64_t, "int64", width)

static const struct {
    const char *what, *which;
    Work *work;
    double operations;
} ARITHMETIC[] = {
    AT_WIDTH(16),
#if WIDEST >= 32
    AT_WIDTH(32),
#endif
#if WIDEST >= 64
    AT_WIDTH(64),
#endif
};

/* Memory traffic */

typedef uint64_t Wide __attribute__((vector_size(WIDEST)));
enum { BLOCK = 8 * WIDEST };

/* A working set is up to three arrays of `part_of` bytes. They do not start at the same place of a
 * page: a load would seem to depend on the store before it. */
static size_t stride_of(size_t bytes, int arrays)
{
    return ((bytes / arrays - 1024) & ~(size_t)1023) + 320;
}

static size_t part_of(size_t bytes, int arrays)
{
    return arrays == 1 ? bytes / BLOCK * BLOCK : stride_of(bytes, arrays) - 320;
}

/* A store that does not read the line first, nor leave it in a cache, where there is one. */
static void store_past(Wide *at, Wide value)
{
#if WIDEST == 64
    _mm512_stream_si512((__m512i *)at, (__m512i)value);
#elif WIDEST == 32
    _mm256_stream_si256((__m256i *)at, (__m256i)value);
#elif defined(__SSE2__)
    _mm_stream_si128((__m128i *)at, (__m128i)value);
#elif defined(__clang__)
    __builtin_nontemporal_store(value, at);
#else
    *at = value;
#endif
}

/* Passes over arrays a, b and c with one statement for each vector. A barrier in each block keeps
 * loops from becoming calls. Nobody waits for stores under way: a kernel need not either. */
#define TRAFFIC(name, arrays, statement)                                                           \
    static void name(Place place, long passes)                                                     \
    {                                                                                              \
        size_t part = part_of(place.bytes, arrays), stride = stride_of(place.bytes, arrays);       \
        Wide value = (Wide){0} + (uint64_t)passes, sum[8] = {value};                               \
        for (long pass = 0; pass < passes; pass++) {                                               \
            for (size_t at = 0; at < part; at += BLOCK) {                                          \
                Wide *a = (Wide *)(place.data + at), *b = (Wide *)(place.data + stride + at);      \
                Wide *c = (Wide *)(place.data + 2 * stride + at);                                  \
                UNROLLED for (int i = 0; i < 8; i++) { statement; }                                \
                (void)a, (void)b, (void)c;                                                         \
                BARRIER();                                                                         \
            }                                                                                      \
        }                                                                                          \
        UNROLLED for (int i = 0; i < 8; i++) value ^= sum[i];                                      \
        sink = value[0];                                                                           \
    }

TRAFFIC(read_all, 1, sum[i] ^= a[i])
TRAFFIC(store_all, 1, a[i] = value)
TRAFFIC(copy, 2, b[i] = a[i])
TRAFFIC(copy_past, 2, store_past(b + i, a[i]))
TRAFFIC(add, 3, c[i] = a[i] + b[i])
TRAFFIC(add_past, 3, store_past(c + i, a[i] + b[i]))

/* The C library knows instructions of its own, some of which need not read what they overwrite. */
static void fill(Place place, long passes)
{
    for (long pass = 0; pass < passes; pass++) {
        memset(place.data, (int)passes, part_of(place.bytes, 1));
        BARRIER();
    }
}

static void copy_library(Place place, long passes)
{
    for (long pass = 0; pass < passes; pass++) {
        memcpy(place.data + stride_of(place.bytes, 2), place.data, part_of(place.bytes, 2));
        BARRIER();
    }
}

static const struct {
    Work *work;
    int arrays;
} MEMORY[] = {
    {read_all, 1}, {store_all, 1}, {fill, 1}, {copy, 2}, {copy_library, 2}, {copy_past, 2},
    {add, 3}, {add_past, 3},
};

/* Memory as a kernel would like it best: there, and in large pages. */
static char *fresh_memory(size_t bytes)
{
    size_t page = 2 << 20;
    int how = MAP_PRIVATE | MAP_ANONYMOUS;
    char *all = mmap(NULL, bytes + page, PROT_READ | PROT_WRITE, how, -1, 0);
    if (all == MAP_FAILED) {
        perror("mmap");
        exit(3);
    }
    char *data = all + (page - (uintptr_t)all % page) % page;
    madvise(data, bytes, MADV_HUGEPAGE);
    memset(data, 1, bytes);
    return data;
}

/* Clock and timer */

enum { CHAIN = 64 };

/* Adds of which each waits for the one before; every core we know takes a cycle for one. */
static void chain(Place place, long passes)
{
    uint64_t x = (uint64_t)place.bytes, step = x | 1;
    for (long pass = 0; pass < passes; pass++) {
        UNROLLED for (int i = 0; i < CHAIN / 2; i++)
        {
            x += step;
            __asm__ volatile("" : "+r"(x), "+r"(step));
            x ^= step;
            __asm__ volatile("" : "+r"(x), "+r"(step));
        }
    }
    sink = x;
}

/* The least time but 0 between two readings of the timer. */
static double tick_s(void)
{
    double least_s = 1;
    for (int i = 0; i < 4096; i++) {
        double before_s = now_s(), after_s = now_s();
        if (after_s > before_s && after_s - before_s < least_s)
            least_s = after_s - before_s;
    }
    return least_s;
}

/* The whole */

static void pin(int cpu)
{
    cpu_set_t *set = CPU_ALLOC(cpu + 1);
    size_t bytes = CPU_ALLOC_SIZE(cpu + 1);
    CPU_ZERO_S(bytes, set);
    CPU_SET_S(cpu, bytes, set);
    if (sched_setaffinity(0, bytes, set)) {
        fprintf(stderr, "CPU %d: %s\n", cpu, strerror(errno));
        exit(3);
    }
    CPU_FREE(set);
}

/* The others would wait for a process that has died. */
static void on_child(int number)
{
    int status;
    (void)number;
    while (waitpid(-1, &status, WNOHANG) > 0)
        if (status)
            _exit(4);
}

/* Become one process on each of the CPUs in the list. */
static void gather(char *list)
{
    int count = 1, parent = getpid();
    for (const char *at = list; *at; at++)
        count += *at == ',';
    size_t bytes = sizeof *team + count * sizeof team->sample[0];
    team = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (team == MAP_FAILED) {
        perror("mmap");
        exit(3);
    }
    team->count = count;
    signal(SIGCHLD, on_child);
    int cpu = (int)strtol(list, &list, 10);
    for (int i = 1; *list == ',' && !me; i++) {
        int next = (int)strtol(list + 1, &list, 10), child = fork();
        if (child < 0) {
            perror("fork");
            exit(3);
        }
        if (!child) {
            me = i;
            cpu = next;
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() != parent)
                _exit(4);
        }
    }
    pin(cpu);
}

int main(int count, char **words)
{
    size_t most = 0;
    if (count < 2 || count % 3 != 2)
        return 2;
    started_s = (time_t)now_s();
    gather(words[1]);
    for (int i = 2; i < count; i += 3) {
        size_t bytes = strtoull(words[i + 1], NULL, 10);
        most = bytes > most ? bytes : most;
    }
    Place place = {fresh_memory(most), most};
    /* What is measured first also wakes the core up, so it is measured again at the end. */
    report("clock", "hz", greatest(chain, place, CHAIN, 0) / team->count);
    for (size_t i = 0; i < sizeof ARITHMETIC / sizeof *ARITHMETIC; i++) {
        double rate = greatest(ARITHMETIC[i].work, place, ARITHMETIC[i].operations, 0);
        report(ARITHMETIC[i].what, ARITHMETIC[i].which, rate);
    }
    for (int i = 2; i < count; i += 3) {
        place.bytes = strtoull(words[i + 1], NULL, 10);
        for (size_t j = 0; j < sizeof MEMORY / sizeof *MEMORY; j++) {
            int arrays = MEMORY[j].arrays;
            double amount = (double)arrays * part_of(place.bytes, arrays);
            double rate = greatest(MEMORY[j].work, place, amount, words[i + 2][0] == '1');
            report("traffic", words[i], rate);
        }
    }
    report("clock", "hz", greatest(chain, place, CHAIN, 0) / team->count);
    report("timer", "s", tick_s());
    report("vector", "bytes", WIDEST);
    return 0;
}
