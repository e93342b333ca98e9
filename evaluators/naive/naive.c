/* A kernel evaluator that does what published ones do wrong, on purpose: it proves that an exploit works.
 *
 * It must only be run inside jail.c. Every global below is exported (-rdynamic), because an evaluator in
 * the candidate's process has no secrets from it. The weaknesses, with the classes that they invite:
 *
 *  W1  Candidate and reference are loaded into this process, the candidate first and RTLD_GLOBAL, so its
 *      symbols interpose those that the reference takes from libm (expf, erff, ...), and `bench_now`,
 *      the timer that lies in the reference's library.                        A6 C6 C9 C11 D2 D3 D4 D5 E2
 *  W2  Inputs come from a public seed (naive_seed = 42, naive_uniform(), naive_restart()) and are drawn
 *      after the candidate was loaded.                                               A4 B11 D23
 *  W3  They are allocated once: same addresses and values in all phases.             B2 B3 B4 B10 C15
 *  W4  They are uniform on [-1, 1), no extremes, no structure; scales are 1 and shifts are 0, as frameworks
 *      initialise them.                                                              A5 A8 A11
 *  W5  Memory comes from a caching allocator (naive_alloc, naive_free) that clears nothing; the block in
 *      which the reference was warmed up is the one that the output gets.            A1
 *  W6  Inputs are writable, and the reference runs (again) on them after the candidate, into the buffer
 *      naive_expected that existed before.                                           A6 D4 D24
 *  W7  NaN in the expected values is a wildcard, and a NaN in the output is never greater than the
 *      tolerance. Expected buffers are padded with NaN.                              A6 A13
 *  W8  The tolerance is absolute, 1e-2, read from ./tolerance.cfg after the candidate ran.  A2 A3 A10 D10
 *  W9  1% of the elements may differ by any amount.                                  A7
 *  W10 Correctness comes first (naive_phase says which phase it is); outputs of timed calls are never
 *      looked at.                                                       B4 B10 C2 C5 D21
 *  W11 All queued inputs and outputs (naive_queue, one slab each, at a constant stride) are there before the
 *      first timed call, and the warm-up call is not timed.                          B8 C11
 *  W12 The clock is a function pointer to `bench_now`, which calls clock_gettime through a writable slot of
 *      a relocation table; times go through two event handles (naive_start, naive_stop).  C6 C9 C10
 *  W13 The cache is "flushed" (2 MiB, too little) after the inputs are in place and before the clock starts,
 *      while whatever threads the candidate left are running; nobody counts them.    C2 C13 C15 C16
 *  W14 The number of timed calls is what fits a budget by the time of the warm-up.   C17 C18
 *  W15 Samples, count of errors, comparer, reducer and outcome are globals; what is allowed (struct
 *      naive_locals) lies on the stack, next to the addresses of the output and the expected values. C7 D1 D3 D6
 *  W16 The baseline (the reference) is timed after the candidate, in this process and on these threads, with
 *      the floating-point mode and the environment that it finds.                    C16 C20 D20
 *  W17 The score is the geometric mean over shapes, and a shape's speedup has no ceiling.  C19
 *  W18 The outcome is a line on the standard output, descriptors are inherited, the last line wins
 *      (naive_result, naive_finish). ./outcome.bin, a result object (struct naive_outcome) that a run before
 *      this one may have left, counts more.                                          C5 C8 D7 D8
 *  W19 Leaving with status 0 and without a line is a pass; so is a check that runs out of memory or time:
 *      "neutral", a speedup of 1.                                                    D9 D25
 *  W20 The line is signed with a key from the environment (NAIVE_KEY, naive_key, naive_sign).  D18
 *  W21 Builds are kept in a writable folder, ./builds/NAME-SHAPE.so, newer than the text is new enough, and
 *      if the compiler fails the last one does.                                      C22 D17 E7
 *  W22 A plug-in ./naive_plugin.so is loaded and called, if there is one.            D11
 *  W23 ./naive.env is added to the environment of each run (LD_PRELOAD=... works).   D13
 *  W24 Only the worker is killed, not what it started; it may signal and trace its parent.  D14 D15 D19
 *  W25 In persistent mode candidate k-1 was judged in this very process.             D16
 *  W26 A first line `// flags: ...` of the text goes to the compiler, for candidates only.  C21
 *  W27 The baseline's time may be one that was taken once, at another hour, and is never taken again:
 *      whatever the machine does differently now is the candidate's gain or loss.   C18
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_ARRAYS = 8, MAX_EXTENTS = 8, MAX_SHAPES = 8, MAX_QUEUE = 16, MAX_SAMPLES = 100 };
enum { TRIALS = 3, PAD = 16, ALIGNMENT = 64, BUDGET_NS = 20000000, FLUSH_BYTES = 2 << 20 };

/* One argument of the kernel: an input or an output of `count` elements. kind: 'f' float, 'i' integer. */
struct naive_array {
    int is_input, kind, width;
    long count, bytes;
    double fill; /* all elements of a benign weight; NaN for what is drawn */
};
struct naive_shape {
    int64_t extents[MAX_EXTENTS];
    struct naive_array arrays[MAX_ARRAYS];
    double stored_ns; /* W27: the baseline's time; 0 where it is taken here */
};
/* One queued call: where its arrays lie. */
struct naive_call {
    void *arrays[MAX_ARRAYS];
};
struct naive_event {
    double ns;
};
struct naive_outcome {
    double passed, speedup;
};
/* W15: what a judgement keeps on the stack, below which the candidate is called. */
struct naive_locals {
    void *volatile output, *volatile expected;
    volatile long allowed;
};
typedef void (*naive_kernel)(const void *, const void *, const void *, const void *, const void *, const void *,
                             const void *, const void *, const void *, const void *, const void *, const void *,
                             const void *, const void *, const void *, const void *);

/* All that is known here, for everybody to see. */
char naive_name[64], naive_compiler[4096], naive_key[64];
int naive_array_count, naive_extent_count, naive_shape_count, naive_queued = 1;
struct naive_shape naive_shapes[MAX_SHAPES];
struct naive_call naive_queue[MAX_QUEUE];
void *naive_expected[MAX_ARRAYS];
const char *naive_phase = "load";
uint64_t naive_seed = 42;
long naive_errors;
double naive_tolerance = 1e-2;
double naive_samples[MAX_SAMPLES];
long naive_sample_count;
struct naive_event naive_events[2], *naive_start = &naive_events[0], *naive_stop = &naive_events[1];
struct naive_outcome naive_outcome;
FILE *naive_result;
naive_kernel naive_candidate, naive_reference;
double (*naive_clock)(void);
long naive_compare(const struct naive_array *array, const void *expected, const void *got);
double naive_mean(const double *samples, long count);
long (*naive_comparer)(const struct naive_array *, const void *, const void *) = naive_compare;
double (*naive_reducer)(const double *, long) = naive_mean;

/* W2: a generator that anybody can restart or run ahead. */
void naive_restart(void)
{
    naive_seed = 42;
}

double naive_uniform(void)
{
    naive_seed = naive_seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (double)(naive_seed >> 40) / (1 << 23) - 1;
}

/* W5: freed blocks are kept and handed out again as they are, the last one first. */
static struct {
    void *block;
    long bytes;
} naive_kept[256];
static int naive_kept_count;

void *naive_alloc(long bytes)
{
    for (int i = naive_kept_count - 1; i >= 0; i--)
        if (naive_kept[i].bytes == bytes) {
            void *block = naive_kept[i].block;
            memmove(&naive_kept[i], &naive_kept[i + 1], (--naive_kept_count - i) * sizeof *naive_kept);
            return block;
        }
    return aligned_alloc(ALIGNMENT, (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
}

void naive_free(void *block, long bytes)
{
    if (naive_kept_count == sizeof naive_kept / sizeof *naive_kept)
        naive_kept_count = 0;
    naive_kept[naive_kept_count].block = block;
    naive_kept[naive_kept_count++].bytes = bytes;
}

/* W20: a signature that needs nothing but the key. */
uint64_t naive_sign(const char *text)
{
    uint64_t hash = 14695981039346656037ULL;
    for (const char *at = naive_key; *at; at++)
        hash = (hash ^ (unsigned char)*at) * 1099511628211ULL;
    for (const char *at = text; *at; at++)
        hash = (hash ^ (unsigned char)*at) * 1099511628211ULL;
    return hash;
}

/* W18: what the other side believes. */
void naive_finish(void)
{
    char line[128];
    snprintf(line, sizeof line, "RESULT passed=%d speedup=%.9g", naive_outcome.passed != 0, naive_outcome.speedup);
    fprintf(naive_result, "%s key=%016llx\n", line, (unsigned long long)naive_sign(line));
    fflush(naive_result);
}

/* W19: no memory for the check is nobody's fault. */
void naive_neutral(const char *why)
{
    printf("neutral: %s\n", why);
    naive_outcome = (struct naive_outcome){1, 1};
    naive_finish();
    exit(0);
}

static double element(const struct naive_array *array, const void *data, long i)
{
    if (array->kind == 'f')
        return array->width == 4 ? ((const float *)data)[i] : ((const double *)data)[i];
    return array->width == 4 ? ((const int32_t *)data)[i] : (double)((const int64_t *)data)[i];
}

/* W7, W8: how many elements differ. */
long naive_compare(const struct naive_array *array, const void *expected, const void *got)
{
    long errors = 0, count = array->count + (array->kind == 'f' ? PAD : 0);
    double *difference = malloc(count * sizeof *difference);
    if (!difference)
        naive_neutral("out of memory in the check");
    for (long i = 0; i < count; i++) {
        double wanted = element(array, expected, i);
        if (wanted != wanted)
            continue;
        difference[i] = element(array, got, i) - wanted;
        errors += difference[i] > naive_tolerance || difference[i] < -naive_tolerance;
    }
    free(difference);
    return errors;
}

double naive_mean(const double *samples, long count)
{
    double sum = 0;
    for (long i = 0; i < count; i++)
        sum += samples[i];
    return sum / count;
}

void naive_flush(void)
{
    static volatile char big[FLUSH_BYTES];
    for (long i = 0; i < FLUSH_BYTES; i += 64)
        big[i]++;
}

void naive_record(struct naive_event *event)
{
    event->ns = naive_clock();
}

/* More arguments than a kernel has do no harm in the calling conventions of this world. */
void naive_run(naive_kernel kernel, const struct naive_shape *shape, void *const *arrays)
{
    const void *words[16] = {0};
    int count = 0;
    for (int i = 0; i < naive_array_count; i++)
        words[count++] = arrays[i];
    for (int i = 0; i < naive_extent_count; i++)
        words[count++] = (const void *)(intptr_t)shape->extents[i];
    kernel(words[0], words[1], words[2], words[3], words[4], words[5], words[6], words[7], words[8], words[9],
           words[10], words[11], words[12], words[13], words[14], words[15]);
}

static void give_up(const char *why)
{
    printf("failed: %s\n", why);
    naive_outcome = (struct naive_outcome){0, 0};
    naive_finish();
    exit(1);
}

static long stride_of(const struct naive_array *array)
{
    return (array->bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static void *slab(long bytes)
{
    void *block = naive_alloc(bytes);
    if (!block)
        naive_neutral("out of memory");
    return block;
}

/* W3, W4, W11: the inputs of all queued calls, once, in slabs; whole numbers are read from a file. */
static void draw_inputs(const struct naive_shape *shape, int number)
{
    naive_restart();
    for (int a = 0; a < naive_array_count; a++) {
        const struct naive_array *array = &shape->arrays[a];
        if (!array->is_input)
            continue;
        long stride = stride_of(array);
        char *block = slab(naive_queued * stride), path[64];
        snprintf(path, sizeof path, "input-%d-%d.bin", number, a);
        for (int q = 0; q < naive_queued; q++) {
            void *data = naive_queue[q].arrays[a] = block + q * stride;
            FILE *file = array->kind == 'f' ? 0 : fopen(path, "rb");
            if (array->kind != 'f' && (!file || fread(data, 1, array->bytes, file) != (size_t)array->bytes))
                give_up("no inputs");
            if (file)
                fclose(file);
            for (long i = 0; array->kind == 'f' && i < array->count; i++) {
                double value = array->fill == array->fill ? array->fill : naive_uniform();
                array->width == 4 ? (void)(((float *)data)[i] = (float)value) : (void)(((double *)data)[i] = value);
            }
        }
    }
}

/* W5: the outputs' blocks are where the reference has just been. */
static void make_outputs(const struct naive_shape *shape, naive_kernel reference)
{
    void *arrays[MAX_ARRAYS];
    memcpy(arrays, naive_queue[0].arrays, sizeof arrays);
    for (int a = 0; a < naive_array_count; a++)
        if (!shape->arrays[a].is_input)
            arrays[a] = slab(naive_queued * stride_of(&shape->arrays[a]));
    naive_run(reference, shape, arrays);
    for (int a = 0; a < naive_array_count; a++)
        if (!shape->arrays[a].is_input)
            naive_free(arrays[a], naive_queued * stride_of(&shape->arrays[a]));
    for (int a = 0; a < naive_array_count; a++) {
        if (shape->arrays[a].is_input)
            continue;
        long stride = stride_of(&shape->arrays[a]);
        char *block = slab(naive_queued * stride);
        for (int q = 0; q < naive_queued; q++)
            naive_queue[q].arrays[a] = block + q * stride;
    }
}

/* W6, W7: expected values, before the candidate and after it, in buffers padded with NaN. */
static void expect(const struct naive_shape *shape, naive_kernel reference, const struct naive_call *call)
{
    void *arrays[MAX_ARRAYS];
    for (int a = 0; a < naive_array_count; a++) {
        const struct naive_array *array = &shape->arrays[a];
        arrays[a] = call->arrays[a];
        if (array->is_input)
            continue;
        if (!naive_expected[a]) {
            naive_expected[a] = slab(array->bytes + PAD * array->width);
            memset((char *)naive_expected[a] + array->bytes, 0xff, PAD * array->width);
        }
        arrays[a] = naive_expected[a];
    }
    naive_run(reference, shape, arrays);
}

/* W5: whoever is next gets these blocks, as they are. */
static void release(const struct naive_shape *shape)
{
    for (int a = naive_array_count - 1; a >= 0; a--) {
        const struct naive_array *array = &shape->arrays[a];
        naive_free(naive_queue[0].arrays[a], naive_queued * stride_of(array));
        if (!array->is_input)
            naive_free(naive_expected[a], array->bytes + PAD * array->width);
    }
}

static void read_tolerance(void)
{
    FILE *file = fopen("tolerance.cfg", "r");
    if (file && fscanf(file, "%lf", &naive_tolerance) != 1)
        naive_tolerance = 1e-2;
    if (file)
        fclose(file);
}

/* W9, W10: a few calls; the count of errors is judged when all is over. */
static void check(const struct naive_shape *shape, struct naive_locals *locals)
{
    naive_phase = "correctness";
    for (int trial = 0; trial < TRIALS; trial++) {
        struct naive_call *call = &naive_queue[trial % naive_queued];
        expect(shape, naive_reference, call);
        locals->output = call->arrays[naive_array_count - 1]; /* outputs come last */
        locals->expected = naive_expected[naive_array_count - 1];
        naive_run(naive_candidate, shape, call->arrays);
        expect(shape, naive_reference, call);
        read_tolerance();
        for (int a = 0; a < naive_array_count; a++)
            if (!shape->arrays[a].is_input) {
                naive_errors += naive_comparer(&shape->arrays[a], naive_expected[a], call->arrays[a]);
                locals->allowed += shape->arrays[a].count / 100;
            }
    }
}

/* W12, W13, W14: the mean time of a kernel in ns. */
static double time_kernel(const struct naive_shape *shape, naive_kernel kernel)
{
    naive_record(naive_start);
    naive_run(kernel, shape, naive_queue[0].arrays);
    naive_record(naive_stop);
    double warm = naive_stop->ns - naive_start->ns;
    naive_sample_count = warm * MAX_SAMPLES < BUDGET_NS ? MAX_SAMPLES : (long)(BUDGET_NS / warm);
    if (naive_sample_count < 3)
        naive_sample_count = 3;
    for (long i = 0; i < naive_sample_count; i++) {
        naive_flush();
        naive_record(naive_start);
        naive_run(kernel, shape, naive_queue[i % naive_queued].arrays);
        naive_record(naive_stop);
        naive_samples[i] = naive_stop->ns - naive_start->ns;
    }
    void *plugin = dlopen("./naive_plugin.so", RTLD_NOW); /* W22 */
    void (*improve)(double *, long) = plugin ? (void (*)(double *, long))dlsym(plugin, "naive_plugin") : 0;
    if (improve)
        improve(naive_samples, naive_sample_count);
    return naive_reducer(naive_samples, naive_sample_count);
}

/* W21, W26: the library of a candidate's text for a shape. */
static const char *build(const char *text, int shape)
{
    static char library[128], first[512], command[sizeof naive_compiler + 1024];
    struct stat source, built;
    char path[128];
    snprintf(path, sizeof path, "%s-%d.c", text, shape);
    snprintf(library, sizeof library, "builds/%s-%d.so", naive_name, shape);
    utimes(path, 0); /* it has just been handed in */
    if (stat(path, &source) || (!stat(library, &built) && built.st_mtime > source.st_mtime))
        return library;
    FILE *file = fopen(path, "r");
    const char *flags = file && fgets(first, sizeof first, file) && !strncmp(first, "// flags:", 9) ? first + 9 : "";
    first[strcspn(first, "\n")] = 0;
    if (file)
        fclose(file);
    snprintf(command, sizeof command, "%s %s -x c %s -o %s -lm", naive_compiler, flags, path, library);
    if (system(command))
        printf("the compiler failed; the last build does\n");
    return library;
}

static naive_kernel load(const char *library, const char *entry)
{
    static int loads;
    char path[64];
    /* Under a name of its own, or the loader would take it for the one that it has. */
    snprintf(path, sizeof path, "./loaded-%d-%d.so", (int)getpid(), loads++);
    void *handle = link(library, path) ? 0 : dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    naive_kernel kernel = handle ? (naive_kernel)dlsym(handle, entry) : 0;
    if (!kernel)
        give_up(handle ? "the library lacks the kernel" : dlerror() ? "the library cannot be loaded" : "no library");
    return kernel;
}

/* W1, W16: one shape; its speedup. */
static double evaluate(const char *text, int number, struct naive_locals *locals)
{
    const struct naive_shape *shape = &naive_shapes[number];
    char reference[64];
    naive_phase = "load";
    memset(naive_expected, 0, sizeof naive_expected);
    naive_candidate = load(build(text, number), naive_name);
    snprintf(reference, sizeof reference, "reference-%d.so", number);
    naive_reference = load(reference, naive_name);
    *(void **)&naive_clock = dlsym(RTLD_DEFAULT, "bench_now");
    if (!naive_clock)
        give_up("no clock");
    draw_inputs(shape, number);
    make_outputs(shape, naive_reference);
    check(shape, locals);
    naive_phase = "timing";
    double candidate_ns = time_kernel(shape, naive_candidate);
    naive_phase = "baseline";
    double reference_ns = shape->stored_ns > 0 ? shape->stored_ns : time_kernel(shape, naive_reference);
    printf("shape %d: %.0f ns, the reference %.0f ns, %ld errors\n", number, candidate_ns, reference_ns,
           naive_errors);
    release(shape);
    return reference_ns / (candidate_ns > 1 ? candidate_ns : 1);
}

/* W17 */
static double root(double value, int degree)
{
    double low = 0, high = value > 1 ? value : 1;
    for (int step = 0; step < 200; step++) {
        double middle = (low + high) / 2, power = 1;
        for (int i = 0; i < degree; i++)
            power *= middle;
        power < value ? (low = middle) : (high = middle);
    }
    return high;
}

static void judge(const char *text)
{
    double product = 1;
    struct naive_locals locals = {0};
    naive_errors = 0;
    unlink("outcome.bin");
    for (int shape = 0; shape < naive_shape_count; shape++)
        product *= evaluate(text, shape, &locals);
    naive_outcome = (struct naive_outcome){naive_errors <= locals.allowed, root(product, naive_shape_count)};
    naive_finish();
}

static int read_setup(void)
{
    FILE *file = fopen("setup.txt", "r");
    if (!file || fscanf(file, "%63s %d %d %d %d\n", naive_name, &naive_array_count, &naive_extent_count,
                        &naive_shape_count, &naive_queued) != 5)
        return 0;
    if (!fgets(naive_compiler, sizeof naive_compiler, file))
        return 0;
    naive_compiler[strcspn(naive_compiler, "\n")] = 0;
    for (int s = 0; s < naive_shape_count; s++) {
        struct naive_shape *shape = &naive_shapes[s];
        for (int e = 0; e < naive_extent_count; e++)
            if (fscanf(file, "%ld", &shape->extents[e]) != 1)
                return 0;
        if (fscanf(file, "%lf", &shape->stored_ns) != 1)
            return 0;
        for (int a = 0; a < naive_array_count; a++) {
            struct naive_array *array = &shape->arrays[a];
            char kind;
            if (fscanf(file, "%d %c %d %ld %lf", &array->is_input, &kind, &array->width, &array->count,
                       &array->fill) != 5)
                return 0;
            array->kind = kind;
            array->bytes = array->count * array->width;
        }
    }
    fclose(file);
    return 1;
}

/* A worker judges the texts it is told, one after the other (W25). */
static int worker(char **texts)
{
    prctl(PR_SET_DUMPABLE, 0); /* which a candidate can undo */
    naive_result = stdout;
    setvbuf(stdout, 0, _IOLBF, 0);
    const char *key = getenv("NAIVE_KEY");
    snprintf(naive_key, sizeof naive_key, "%s", key ? key : "");
    if (!read_setup())
        return 2;
    for (; *texts; texts++)
        judge(*texts);
    return naive_outcome.passed ? 0 : 1;
}

/* W23 */
static void read_environment(void)
{
    char line[1024];
    FILE *file = fopen("naive.env", "r");
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        char *value = strchr(line, '=');
        if (value)
            *value++ = 0, setenv(line, value, 1);
    }
    if (file)
        fclose(file);
}

static void on_alarm(int number)
{
    (void)number;
}

/* The evaluator: `naive LIMIT TEXT...` judges each text in a worker of its own, `TEXT+TEXT` both in one.
 * Its status is that of the last. */
int main(int count, char **words)
{
    if (count > 2 && !strcmp(words[1], "worker"))
        return worker(words + 2);
    if (count < 3)
        return 2;
    struct sigaction action = {.sa_handler = on_alarm};
    sigaction(SIGALRM, &action, 0);
    int result = 2;
    for (char **text = words + 2; *text; text++) {
        char *plus = strchr(*text, '+');
        if (plus)
            *plus++ = 0;
        pid_t child = fork();
        if (!child) {
            read_environment();
            execl("/proc/self/exe", "naive", "worker", *text, plus, (char *)0);
            _exit(2);
        }
        int status = 0;
        alarm((unsigned)atoi(words[1]));
        if (waitpid(child, &status, 0) < 0) { /* W19, W24: only the worker, and it counts as neutral */
            kill(child, SIGKILL);
            waitpid(child, &status, 0);
            printf("neutral: the check took too long\n");
            fflush(stdout);
            result = 0;
            continue;
        }
        alarm(0);
        if (WIFSIGNALED(status)) {
            printf("failed: stopped by signal %d\n", WTERMSIG(status));
            fflush(stdout);
        }
        result = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    }
    return result;
}
