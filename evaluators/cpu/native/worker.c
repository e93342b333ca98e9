/* Runs one kernel in a process of its own, which has given up whatever a kernel does not need.
 *
 * Called with the size of the control file, and with descriptors 3 to 6: control, inputs, outputs, the
 * candidate's library. It isolates itself, says so, waits for the judge's word, loads the library, and
 * then serves calls (serve.h). It decides nothing: not whether an answer is right, not how long it took.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "serve.h"
#include "isolate.h"

typedef void (*entry_t)(void *const *, const int64_t *);
typedef void (*parallel_t)(void (*)(void *), void *, unsigned, unsigned);

static entry_t entry;
static void **pointers;
static int (*thread_number)(void);

static void on_signal(int number, siginfo_t *info, void *context)
{
    (void)context;
    kw_control->signal = number;
    kw_control->address = (uint64_t)info->si_addr;
    kw_control->system_call = number == SIGSYS ? info->si_syscall : -1;
    kw_tell(KW_SIGNALLED);
    _exit(128 + number);
}

static void watch_signals(void)
{
    static char stack[1 << 16];
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&alternate, 0);
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    const int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaction(numbers[i], &action, 0);
}

static void pin(int64_t number)
{
    if (!kw_setup->cores)
        return;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((int)kw_cores[number % kw_setup->cores], &set);
    sched_setaffinity(0, sizeof set, &set);
}

static void pin_team(void *nothing)
{
    (void)nothing;
    pin(thread_number());
}

/* An OpenMP team is there, pinned and counted, before any input exists and before the candidate does: its
 * functions are those of the library, not what a candidate calls so. */
static void start_team(void)
{
    static const char *const names[] = {"libgomp.so.1", "libomp.so", "libomp.so.5", "libiomp5.so"};
    for (size_t i = 0; kw_setup->threads > 1 && i < sizeof names / sizeof *names; i++) {
        void *library = dlopen(names[i], RTLD_NOW | RTLD_GLOBAL);
        if (!library)
            continue;
        parallel_t parallel = (parallel_t)dlsym(library, "GOMP_parallel");
        thread_number = (int (*)(void))dlsym(library, "omp_get_thread_num");
        if (parallel && thread_number)
            parallel(pin_team, 0, (unsigned)kw_setup->threads, 0);
        return;
    }
}

static void *do_nothing(void *nothing) { return nothing; }

/* The C library prepares itself for threads when the first one is made, by calls that are shut later. */
static void make_first_thread(void)
{
    pthread_t first;
    if (kw_setup->threads > 1 && !pthread_create(&first, 0, do_nothing, 0))
        pthread_join(first, 0);
}

/* glibc keeps some small pieces of every size for the next who asks. While it has fewer, the piece in front of an
 * aligned array stays with it when the array is freed, and the next array lies behind the last: after eight of them
 * they come to lie where they were. Let it have them. */
static void fill_small(void)
{
    enum { SIZES = 64, EACH = 7, LEAST = 24, STEP = 16 };
    void *pieces[SIZES][EACH];
    for (size_t size = 0; size < SIZES; size++)
        for (size_t k = 0; k < EACH; k++)
            pieces[size][k] = malloc(LEAST + STEP * size);
    for (size_t size = 0; size < SIZES; size++)
        for (size_t k = 0; k < EACH; k++)
            free(pieces[size][k]);
}

/* Memory that a kernel makes for itself and gives back is there already, as in a process that has run for long:
 * twice as much as its arrays take, and a megabyte, up to what malloc keeps (environment.py). It is zero, as new
 * pages are. */
static void fill_heap(void)
{
    enum { TIMES = 2, PIECE = 1 << 22, PIECES = 8 };
    size_t wanted = 1 << 20;
    for (int64_t i = 0; i < kw_setup->arrays; i++)
        wanted += TIMES * (size_t)kw_places[i].map_bytes;
    char *pieces[PIECES] = {0};
    for (size_t k = 0; k < PIECES && wanted; k++) {
        size_t bytes = wanted < PIECE ? wanted : PIECE;
        pieces[k] = malloc(bytes);
        for (size_t at = 0; pieces[k] && at < bytes; at += KW_PAGE)
            ((volatile char *)pieces[k])[at] = 0;
        wanted -= bytes;
    }
    for (size_t k = 0; k < PIECES; k++)
        free(pieces[k]);
}

static void run(uint32_t slot) { entry(pointers + (size_t)slot * (size_t)kw_setup->arrays, kw_extents); }

int main(int count, char **words)
{
    if (count != 2)
        return 2;
    kw_heap = sbrk(0);
    kw_map_control((size_t)atoll(words[1]));
    kw_map_arrays();
    size_t places = (size_t)kw_setup->arrays * (size_t)kw_setup->slots;
    pointers = calloc(places, sizeof *pointers);
    if (!pointers)
        kw_refuse(KW_NOT_MAPPED, "no memory");
    for (size_t i = 0; i < places; i++)
        pointers[i] = (char *)kw_places[i].address + kw_places[i].lead;
    close(KW_INPUTS_FD);
    close(KW_OUTPUTS_FD);
    close(KW_CONTROL_FD);
    pin(0);
    watch_signals();
    make_first_thread();
    fill_small();
    fill_heap();
    kw_isolate();
    kw_tell(KW_ISOLATED);
    kw_await_word();
    start_team();
    void *library = dlopen("/proc/self/fd/6", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        kw_refuse(KW_LIBRARY_MISSING, dlerror());
    entry = (entry_t)dlsym(library, "kw_call");
    if (!entry)
        kw_refuse(KW_ENTRY_MISSING, dlerror());
    syscall(SYS_close_range, 0u, ~0u, 0u);
    kw_filter(0);
#if defined(__x86_64__) || defined(__i386__)
    __asm__ volatile("fninit");
    _mm_setcsr(0x1f80);
#endif
    kw_tell(KW_LOADED);
    kw_serve(run, 1);
}
