/* The judge's side of the call, in the judge's own process, where no candidate is ever loaded.
 *
 * The six steps of a call are in `kw_call`: rest, (inputs were written meanwhile), wake-ready-bell, done,
 * rest again, and then the caller looks at the outputs while nothing runs. All that decides anything here
 * is the judge's own: its clock, what the system says of the worker's tasks, and the outputs.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "flush.h"
#include "protocol.h"

enum { OK = 0, TIMED_OUT = 1, DIED = 2, RESTLESS = 3 };
enum { SPINS = 512, LOOK_NS = 1000000 };

struct kw_worker {
    struct kw_control *control;
    int64_t pid, pidfd, blocking;
    uint32_t call;
    int64_t tasks;    /* how many there were at the last rest */
    uint64_t switches; /* how often they had been scheduled */
    uint64_t waited_ns; /* and how long they had waited for a core */
    int64_t cpu_ns;
};

struct kw_shot {
    /* What is asked. */
    int64_t slot, batch, limit_ns, rest_ns;
    int64_t canaries;
    const uint64_t *places; /* addresses of output elements in this process */
    const int64_t *sizes;   /* their sizes in bytes, at most 8 */
    uint64_t *seen;         /* what was there at the end of the call */
    /* What was found, by this process's clock. */
    int64_t wake_ns, start_ns, end_ns;
    int64_t cpu_ns;  /* of all tasks, from rest to rest */
    int64_t late;    /* canaries that changed after the end */
    int64_t tasks;
    int64_t turns;   /* how often tasks were put on a core: once each, if nothing came between */
    int64_t waited_ns; /* how long tasks that could run had no core, waking up included */
};

static int64_t clock_ns(clockid_t clock)
{
    struct timespec time;
    if (clock_gettime(clock, &time))
        return -1;
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static int64_t now(void) { return clock_ns(CLOCK_MONOTONIC); }

/* The CPU time of a process with all its tasks, those that ended included; exact while it rests. */
static int64_t cpu_ns(int64_t pid)
{
    return clock_ns((clockid_t)((~(unsigned)pid) << 3 | 2));
}

static int ended(const struct kw_worker *w)
{
    struct pollfd poll_ = {.fd = (int)w->pidfd, .events = POLLIN};
    return poll(&poll_, 1, 0) != 0;
}

static int contents(const char *path, char *text, size_t room)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    ssize_t got = read(file, text, room - 1);
    close(file);
    text[got > 0 ? got : 0] = 0;
    return got > 0;
}

/* The state of a task, how often it was scheduled and how long it waited for that; 0 if it is gone. */
static char task_state(int64_t pid, int64_t task, uint64_t *switches, uint64_t *waited_ns)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%lld/task/%lld/stat", (long long)pid, (long long)task);
    if (!contents(path, text, sizeof text))
        return 0;
    /* The name in parentheses may hold anything, the last of them ends it. */
    const char *end = strrchr(text, ')');
    char state = end && end[1] ? end[2] : 0;
    snprintf(path, sizeof path, "/proc/%lld/task/%lld/schedstat", (long long)pid, (long long)task);
    unsigned long long ran, waited, slices = 0;
    if (!contents(path, text, sizeof text) || sscanf(text, "%llu %llu %llu", &ran, &waited, &slices) != 3)
        return 0;
    *switches += slices;
    *waited_ns += waited;
    return state;
}

/* One pass over all tasks: whether every one of them sleeps, how many there are, and how often they ran.
 * What is not S: R runs, D waits in the system, T is stopped, Z is dead. */
static int all_sleep(int64_t pid, int64_t *tasks, uint64_t *switches, uint64_t *waited_ns, char *odd)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%lld/task", (long long)pid);
    DIR *folder = opendir(path);
    *tasks = 0;
    *switches = *waited_ns = 0;
    if (!folder)
        return 0;
    int sleep = 1;
    struct dirent *entry;
    while ((entry = readdir(folder))) {
        int64_t task = atoll(entry->d_name);
        if (!task)
            continue;
        char state = task_state(pid, task, switches, waited_ns);
        if (!state)
            continue; /* it ended between the two */
        ++*tasks;
        if (state != 'S') {
            sleep = 0;
            *odd = state;
        }
    }
    closedir(folder);
    return sleep && *tasks;
}

/* Wait until every task sleeps in two passes between which none ran. */
static int rest(struct kw_worker *w, int64_t bound_ns, char *odd)
{
    int64_t end = now() + bound_ns, tasks;
    uint64_t switches, waited_ns, before = 0;
    int quiet = 0;
    for (;;) {
        int sleep = all_sleep(w->pid, &tasks, &switches, &waited_ns, odd);
        if (sleep && quiet && switches == before) {
            w->tasks = tasks;
            w->switches = switches;
            w->waited_ns = waited_ns;
            w->cpu_ns = cpu_ns(w->pid);
            return OK;
        }
        quiet = sleep;
        before = switches;
        if (ended(w))
            return DIED;
        if (now() > end)
            return RESTLESS;
    }
}

int kw_rest(struct kw_worker *w, int64_t bound_ns)
{
    char odd = 0;
    return rest(w, bound_ns, &odd);
}

static void wake(struct kw_worker *w)
{
    atomic_store_explicit(&w->control->wake, ++w->call, memory_order_release);
    syscall(SYS_futex, &w->control->wake, FUTEX_WAKE, 1, 0, 0, 0);
}

/* Spin until a word has a value. Without a pause, which would cost a fifth of the floor: the core is the
 * judge's own. */
static int spin(const struct kw_worker *w, const _Atomic uint32_t *word, uint32_t value, int64_t from, int64_t limit_ns)
{
    int64_t look = from + LOOK_NS;
    for (;;) {
        for (int i = 0; i < SPINS; i++) {
            if (atomic_load_explicit(word, memory_order_acquire) == value)
                return OK;
        }
        int64_t time = now();
        if (time < look)
            continue;
        if (time - from > limit_ns)
            return TIMED_OUT;
        if (ended(w))
            return atomic_load_explicit(word, memory_order_acquire) == value ? OK : DIED;
        look = time + LOOK_NS;
    }
}

/* Sleep until a word has a value; looks at the process from time to time. */
static int block(const struct kw_worker *w, const _Atomic uint32_t *word, uint32_t value, int64_t from, int64_t limit_ns)
{
    const struct timespec slice = {0, 5000000};
    for (;;) {
        uint32_t seen = atomic_load_explicit(word, memory_order_acquire);
        if (seen == value)
            return OK;
        syscall(SYS_futex, word, FUTEX_WAIT, seen, &slice, 0, 0);
        if (atomic_load_explicit(word, memory_order_acquire) == value)
            return OK;
        if (now() - from > limit_ns)
            return TIMED_OUT;
        if (ended(w))
            return atomic_load_explicit(word, memory_order_acquire) == value ? OK : DIED;
    }
}

static uint64_t element(const struct kw_shot *s, int64_t i)
{
    uint64_t value = 0;
    memcpy(&value, (const void *)s->places[i], (size_t)s->sizes[i]);
    return value;
}

/* One call from rest to rest. The inputs are there, outputs are poisoned, caches are as declared. */
int kw_call(struct kw_worker *w, struct kw_shot *s)
{
    struct kw_control *c = w->control;
    int64_t tasks;
    uint64_t switches, waited_ns;
    char odd = 0;
    /* 1. It rests since the last time that it was seen at rest. */
    if (!all_sleep(w->pid, &tasks, &switches, &waited_ns, &odd) || switches != w->switches || tasks != w->tasks)
        return ended(w) ? DIED : RESTLESS;
    int64_t cpu = w->cpu_ns;
    atomic_store_explicit(&c->batch, (uint32_t)s->batch, memory_order_relaxed);
    atomic_store_explicit(&c->bell, 0, memory_order_release);
    /* 3. Wake, ready, bell. */
    int end;
    s->wake_ns = now();
    if (w->blocking) {
        s->start_ns = s->wake_ns;
        atomic_store_explicit(&c->bell, (uint32_t)s->slot + 1, memory_order_release);
        wake(w);
        end = block(w, &c->done, w->call, s->start_ns, s->limit_ns);
    } else {
        wake(w);
        end = spin(w, &c->ready, w->call, s->wake_ns, s->limit_ns);
        if (end != OK)
            return end;
        s->start_ns = now();
        atomic_store_explicit(&c->bell, (uint32_t)s->slot + 1, memory_order_release);
        end = spin(w, &c->done, w->call, s->start_ns, s->limit_ns);
    }
    s->end_ns = now();
    if (end != OK)
        return end;
    /* 4. What the outputs are now they must be later. */
    for (int64_t i = 0; i < s->canaries; i++)
        s->seen[i] = element(s, i);
    /* 5. Rest. */
    end = rest(w, s->rest_ns, &odd);
    s->tasks = w->tasks;
    if (end != OK)
        return end;
    s->cpu_ns = w->cpu_ns - cpu;
    s->turns = (int64_t)(w->switches - switches);
    s->waited_ns = (int64_t)(w->waited_ns - waited_ns);
    /* 6. Nothing runs; whoever asked may look. */
    s->late = 0;
    for (int64_t i = 0; i < s->canaries; i++)
        s->late += s->seen[i] != element(s, i);
    return OK;
}

/* Have a worker visit its pages, from rest to rest: a call of no slots. */
int kw_visit(struct kw_worker *w, int64_t limit_ns)
{
    struct kw_control *c = w->control;
    char odd = 0;
    atomic_store_explicit(&c->batch, 0, memory_order_relaxed);
    atomic_store_explicit(&c->bell, 1, memory_order_release);
    int64_t from = now();
    wake(w);
    int end = (w->blocking ? block : spin)(w, &c->done, w->call, from, limit_ns);
    return end == OK ? rest(w, limit_ns, &odd) : end;
}

/* Wait until a worker has come as far as a stage, or further. */
int kw_await(struct kw_worker *w, int64_t stage, int64_t limit_ns)
{
    const struct timespec slice = {0, 5000000};
    int64_t from = now();
    for (;;) {
        uint32_t seen = atomic_load_explicit(&w->control->stage, memory_order_acquire);
        if (seen >= (uint32_t)stage)
            return OK;
        if (ended(w))
            return DIED;
        if (now() - from > limit_ns)
            return TIMED_OUT;
        syscall(SYS_futex, &w->control->stage, FUTEX_WAIT, seen, &slice, 0, 0);
    }
}

void kw_go(struct kw_worker *w) { wake(w); }

/* Starting a worker. */

struct kw_start {
    const char *path;
    char *const *words, *const *environment;
    const int64_t *descriptors; /* for 0, 1, 2, … in the new process */
    int64_t count;
    int64_t namespaces; /* flags of clone */
};

static int become(void *given)
{
    const struct kw_start *start = given;
    setsid();
    /* Whatever it becomes, isolated or not, does not outlive the judge. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, 0);
    /* Out of the way of the numbers that are wanted. */
    int moved[16];
    for (int64_t i = 0; i < start->count; i++)
        if ((moved[i] = fcntl((int)start->descriptors[i], F_DUPFD, 16)) < 0)
            _exit(126);
    for (int64_t i = 0; i < start->count; i++)
        if (dup2(moved[i], (int)i) < 0)
            _exit(126);
    syscall(SYS_close_range, (unsigned)start->count, ~0u, 0u);
    if (chdir("/"))
        _exit(126);
    execve(start->path, start->words, start->environment);
    _exit(127);
}

/* The new process's number, or -errno. This one waits until it has become another program. */
int64_t kw_spawn(const struct kw_start *start)
{
    enum { ROOM = 1 << 16 };
    char *stack = mmap(0, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED)
        return -errno;
    /* No handler of this process may run in the child, which shares its memory for a moment. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int pid = clone(become, stack + ROOM, CLONE_VM | CLONE_VFORK | SIGCHLD | (int)start->namespaces, (void *)start);
    int error = errno;
    pthread_sigmask(SIG_SETMASK, &before, 0);
    munmap(stack, ROOM);
    return pid < 0 ? -error : pid;
}

/* Memory. */

/* An output among its pages: its data from `start` to `end`, what lies beside it from `first` and up to `last`. */
struct kw_output {
    int64_t first, start, end, last;
};

static void fill(unsigned char *file, int64_t from, int64_t to, uint64_t pattern)
{
    const unsigned char *bytes = (const unsigned char *)&pattern;
    for (; from < to && from % 8; from++)
        file[from] = bytes[from % 8];
    for (; from + 8 <= to; from += 8)
        memcpy(file + from, &pattern, 8);
    for (; from < to; from++)
        file[from] = bytes[from % 8];
}

static int holds(const unsigned char *file, int64_t from, int64_t to, uint64_t pattern)
{
    const unsigned char *bytes = (const unsigned char *)&pattern;
    uint64_t word;
    for (; from < to && from % 8; from++)
        if (file[from] != bytes[from % 8])
            return 0;
    for (; from + 8 <= to; from += 8) {
        memcpy(&word, file + from, 8);
        if (word != pattern)
            return 0;
    }
    for (; from < to; from++)
        if (file[from] != bytes[from % 8])
            return 0;
    return 1;
}

/* Fill outputs with a pattern and what lies beside them with another; both start at multiples of 8. */
void kw_poison(unsigned char *file, const struct kw_output *outputs, int64_t count, uint64_t inside, uint64_t beside)
{
    for (int64_t i = 0; i < count; i++) {
        fill(file, outputs[i].first, outputs[i].start, beside);
        fill(file, outputs[i].start, outputs[i].end, inside);
        fill(file, outputs[i].end, outputs[i].last, beside);
    }
}

enum { WHOLE = 0, BEFORE = 1, BEHIND = 2, INSIDE = 3 };

/* What was written that should not have been: beside any output, or into those that are not among `from .. to`.
 * The kind of damage plus 4 times the output's number; 0 if there is none. */
int64_t kw_damage(const unsigned char *file, const struct kw_output *outputs, int64_t count, int64_t from, int64_t to,
                  uint64_t inside, uint64_t beside)
{
    for (int64_t i = 0; i < count; i++) {
        if (!holds(file, outputs[i].first, outputs[i].start, beside))
            return 4 * i + BEFORE;
        if (!holds(file, outputs[i].end, outputs[i].last, beside))
            return 4 * i + BEHIND;
        if ((i < from || i >= to) && !holds(file, outputs[i].start, outputs[i].end, inside))
            return 4 * i + INSIDE;
    }
    return WHOLE;
}

/* Take this thread to a core; 0, or -1 if it may not go there. `before` is where it may be. */
static int go_to(int64_t core, cpu_set_t *before)
{
    cpu_set_t there;
    if (core < 0 || sched_getaffinity(0, sizeof *before, before))
        return -1;
    CPU_ZERO(&there);
    CPU_SET((int)core, &there);
    return sched_setaffinity(0, sizeof there, &there);
}

static int go_back(const cpu_set_t *before) { return sched_setaffinity(0, sizeof *before, before); }

/* Put arrays into a cache state for a core: cold evicts them everywhere; warm reads them from that core, the last one last. */
int kw_prepare(const char *const *data, const int64_t *bytes, int64_t count, int64_t cold, int64_t core)
{
    if (cold) {
        for (int64_t i = 0; i < count; i++)
            kw_evict(data[i], (size_t)bytes[i]);
        kw_evicted();
        return 0;
    }
    cpu_set_t before;
    if (go_to(core, &before))
        return -1;
    for (int64_t i = 0; i < count; i++)
        kw_touch(data[i], (size_t)bytes[i]);
    return go_back(&before);
}

/* The time in ns of so many dependent additions on a core: this thread goes there and comes back. The least of
 * three looks: an interruption is not the clock. Each adds the sum before: cores that fold additions of a constant
 * into what follows would do several in a cycle. */
int64_t kw_adds(int64_t core, int64_t adds)
{
    cpu_set_t before;
    if (go_to(core, &before))
        return -1;
    int64_t least = INT64_MAX;
    for (int look = 0; look < 3; look++) {
        uint64_t even = (uint64_t)adds, odd = 1;
        int64_t from = now();
        for (int64_t i = 0; i < adds; i += 8) {
            for (int k = 0; k < 4; k++) {
                even += odd;
                __asm__ volatile("" : "+r"(even));
                odd += even;
                __asm__ volatile("" : "+r"(odd));
            }
        }
        int64_t took = now() - from;
        least = took < least ? took : least;
    }
    return go_back(&before) ? -1 : least;
}
