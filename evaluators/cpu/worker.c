/* Runs one kernel in a process of its own.
 *
 * Called with three descriptors: the inputs' file, the outputs' file, and where replies go. Standard
 * input gives a setup and then calls, each of which gets one reply. Inputs are mapped read-only and outputs writable, every array between pages that may not be touched, so that a
 * write beside them stops the process. Whatever stops it is reported with the address it touched.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "flush.h"

enum { MAX_ARRAYS = 32, MAX_EXTENTS = 32, MAX_SETS = 8 };
enum { READY = 1, DONE = 2, REFUSED = 3, SIGNALLED = 4 };
enum { LIBRARY_MISSING = 1, ENTRY_MISSING = 2, NOT_MAPPED = 3, BAD_SETUP = 4 };
enum { COLD = 0, WARM = 1 };
enum { FILE_BYTES = 64 << 20 };

struct header {
    int64_t arrays, extents, sets, page, path_bytes, memory_bytes;
};
struct array {
    int64_t is_input, offset, set_stride, map_bytes, lead, bytes;
};
struct call {
    int64_t set, state;
};
struct reply {
    int64_t kind, a, b, c;
    char text[224];
};

typedef void (*entry_t)(void *const *, const int64_t *);

static int inputs_fd, outputs_fd, reply_fd;
static struct header header;
static struct array arrays[MAX_ARRAYS];
static int64_t extents[MAX_EXTENTS];
static char *maps[MAX_ARRAYS][MAX_SETS];
static char path[4096];

static void send_reply(int64_t kind, int64_t a, int64_t b, int64_t c, const char *text)
{
    struct reply reply = {kind, a, b, c, {0}};
    if (text)
        strncpy(reply.text, text, sizeof reply.text - 1);
    const char *at = (const char *)&reply;
    for (size_t left = sizeof reply; left;) {
        ssize_t wrote = write(reply_fd, at, left);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            _exit(3);
        at += wrote;
        left -= (size_t)wrote;
    }
}

static void receive(void *target, size_t bytes)
{
    char *at = target;
    while (bytes) {
        ssize_t got = read(0, at, bytes);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            _exit(0); /* the parent is done */
        at += got;
        bytes -= (size_t)got;
    }
}

static void refuse(int64_t why, const char *text)
{
    send_reply(REFUSED, why, 0, 0, text);
    _exit(2);
}

/* What the touched address belongs to: 1 + array and whether it lies inside, else 0. */
static void on_signal(int number, siginfo_t *info, void *context)
{
    (void)context;
    int64_t where = 0, inside = 0;
    const char *address = info->si_addr;
    if (number == SIGSEGV || number == SIGBUS) {
        for (int i = 0; i < header.arrays && !where; i++) {
            for (int s = 0; s < (arrays[i].is_input ? header.sets : 1); s++) {
                const char *start = maps[i][s], *end = start + arrays[i].map_bytes;
                if (start && address >= start - header.page && address < end + header.page) {
                    where = i + 1;
                    inside = address >= start && address < end;
                    break;
                }
            }
        }
    }
    send_reply(SIGNALLED, number, where, inside, 0);
    _exit(128 + number);
}

static void watch_signals(void)
{
    static char stack[1 << 16];
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&alternate, 0);
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESETHAND};
    const int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaction(numbers[i], &action, 0);
}

/* The file's pages between two that may not be touched. */
static char *map_between_guards(const struct array *array, int64_t set)
{
    size_t page = (size_t)header.page, bytes = (size_t)array->map_bytes;
    char *room = mmap(0, bytes + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED)
        refuse(NOT_MAPPED, strerror(errno));
    int protection = array->is_input ? PROT_READ : PROT_READ | PROT_WRITE;
    off_t offset = (off_t)(array->offset + set * array->set_stride);
    char *map = mmap(room + page, bytes, protection, MAP_SHARED | MAP_FIXED | MAP_POPULATE,
                     array->is_input ? inputs_fd : outputs_fd, offset);
    if (map == MAP_FAILED)
        refuse(NOT_MAPPED, strerror(errno));
    return map;
}

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

int main(int count, char **words)
{
    if (count != 4)
        return 2;
    inputs_fd = atoi(words[1]);
    outputs_fd = atoi(words[2]);
    reply_fd = atoi(words[3]);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    receive(&header, sizeof header);
    if (header.arrays > MAX_ARRAYS || header.extents > MAX_EXTENTS || header.sets > MAX_SETS ||
        header.path_bytes >= (int64_t)sizeof path)
        refuse(BAD_SETUP, "too many arrays, extents or sets");
    receive(arrays, (size_t)header.arrays * sizeof *arrays);
    receive(extents, (size_t)header.extents * sizeof *extents);
    receive(path, (size_t)header.path_bytes);
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    struct rlimit file = {FILE_BYTES, FILE_BYTES};
    setrlimit(RLIMIT_FSIZE, &file);
    rlim_t most = (rlim_t)header.memory_bytes;
    struct rlimit memory = {most, most};
    setrlimit(RLIMIT_AS, &memory);
    for (int i = 0; i < header.arrays; i++)
        for (int s = 0; s < (arrays[i].is_input ? header.sets : 1); s++)
            maps[i][s] = map_between_guards(&arrays[i], s);
    watch_signals();
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        refuse(LIBRARY_MISSING, dlerror());
    entry_t entry = (entry_t)dlsym(library, "kw_call");
    if (!entry)
        refuse(ENTRY_MISSING, dlerror());
    send_reply(READY, 0, 0, 0, 0);
    for (;;) {
        struct call call;
        receive(&call, sizeof call);
        void *pointers[MAX_ARRAYS];
        for (int i = 0; i < header.arrays; i++) {
            char *data = maps[i][arrays[i].is_input ? call.set : 0] + arrays[i].lead;
            pointers[i] = data;
            (call.state == COLD ? kw_evict : kw_touch)(data, (size_t)arrays[i].bytes);
        }
        if (call.state == COLD)
            kw_evicted();
        int64_t start = now();
        entry(pointers, extents);
        int64_t end = now();
        send_reply(DONE, end - start, 0, 0, 0);
    }
}
