/* What a worker gives up before it loads a candidate, and what more before it is called.
 *
 * Two system-call filters, one on top of the other. The first is for loading: files may be opened to
 * read, but nothing is created, no process, no socket. The second is for being called: memory of its
 * own, futexes without a time limit, and the end. Nothing that it leaves can wake a task that sleeps but the judge's hand: no timed
 * sleep, no timer, no signal handler, no process, no file.
 */
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#if defined(__x86_64__)
#define KW_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define KW_ARCH AUDIT_ARCH_AARCH64
#endif

#define KW_LOW(n) offsetof(struct seccomp_data, args[n])
#define KW_HIGH(n) (offsetof(struct seccomp_data, args[n]) + 4)

enum { KW_MAX_RULES = 400 };
struct kw_program {
    struct sock_filter rules[KW_MAX_RULES];
    unsigned short count;
};

static void kw_rule(struct kw_program *p, uint16_t code, uint32_t k, uint8_t yes, uint8_t no)
{
    if (p->count == KW_MAX_RULES)
        kw_refuse(KW_NO_PART, "the system-call filter is too long");
    p->rules[p->count++] = (struct sock_filter){code, yes, no, k};
}

static void kw_load(struct kw_program *p, uint32_t offset) { kw_rule(p, BPF_LD | BPF_W | BPF_ABS, offset, 0, 0); }
static void kw_return(struct kw_program *p, uint32_t what) { kw_rule(p, BPF_RET | BPF_K, what, 0, 0); }

static void kw_allow(struct kw_program *p, uint32_t number)
{
    kw_rule(p, BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1);
    kw_return(p, SECCOMP_RET_ALLOW);
}

static void kw_answer(struct kw_program *p, uint32_t number, uint32_t error)
{
    kw_rule(p, BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1);
    kw_return(p, SECCOMP_RET_ERRNO | error);
}

/* Allowed if none of these bits of an argument is set; else it is a violation. */
static void kw_allow_without(struct kw_program *p, uint32_t number, int argument, uint32_t bits)
{
    kw_rule(p, BPF_JMP | BPF_JEQ | BPF_K, number, 0, 4);
    kw_load(p, KW_LOW(argument));
    kw_rule(p, BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1);
    kw_return(p, SECCOMP_RET_TRAP);
    kw_return(p, SECCOMP_RET_ALLOW);
}

/* Allowed if an argument is this address. */
static void kw_allow_this(struct kw_program *p, uint32_t number, int argument, uint64_t address)
{
    kw_rule(p, BPF_JMP | BPF_JEQ | BPF_K, number, 0, 6);
    kw_load(p, KW_LOW(argument));
    kw_rule(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)address, 0, 3);
    kw_load(p, KW_HIGH(argument));
    kw_rule(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(address >> 32), 0, 1);
    kw_return(p, SECCOMP_RET_ALLOW);
    kw_return(p, SECCOMP_RET_TRAP);
}

/* Allowed if an argument is zero: this process, not another. */
static void kw_allow_own(struct kw_program *p, uint32_t number)
{
    kw_rule(p, BPF_JMP | BPF_JEQ | BPF_K, number, 0, 4);
    kw_load(p, KW_LOW(0));
    kw_rule(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0);
    kw_return(p, SECCOMP_RET_TRAP);
    kw_return(p, SECCOMP_RET_ALLOW);
}

/* abort() raises SIGABRT in the thread that calls it, and says so; an assertion writes before that, to a
 * descriptor that is not there. */
static void kw_allow_abort(struct kw_program *p)
{
    kw_rule(p, BPF_JMP | BPF_JEQ | BPF_K, SYS_tgkill, 0, 6);
    kw_load(p, KW_LOW(0));
    kw_rule(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)getpid(), 0, 3);
    kw_load(p, KW_LOW(2));
    kw_rule(p, BPF_JMP | BPF_JEQ | BPF_K, SIGABRT, 0, 1);
    kw_return(p, SECCOMP_RET_ALLOW);
    kw_return(p, SECCOMP_RET_TRAP);
    const uint32_t numbers[] = {SYS_write, SYS_writev};
    for (int i = 0; i < 2; i++) {
        kw_rule(p, BPF_JMP | BPF_JEQ | BPF_K, numbers[i], 0, 4);
        kw_load(p, KW_LOW(0));
        kw_rule(p, BPF_JMP | BPF_JEQ | BPF_K, STDERR_FILENO, 1, 0);
        kw_return(p, SECCOMP_RET_TRAP);
        kw_return(p, SECCOMP_RET_ERRNO | EBADF);
    }
}

/* Threads of this process, and nothing else that clone makes. */
static void kw_allow_threads(struct kw_program *p)
{
#ifdef SYS_clone
    kw_rule(p, BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4);
    kw_load(p, KW_LOW(0));
    kw_rule(p, BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 1, 0);
    kw_return(p, SECCOMP_RET_TRAP);
    kw_return(p, SECCOMP_RET_ALLOW);
#endif
#ifdef SYS_clone3
    /* Its flags lie in memory, where no filter sees them; the C library then takes the older call. */
    kw_answer(p, SYS_clone3, ENOSYS);
#endif
#ifdef SYS_rseq
    kw_allow(p, SYS_rseq);
#endif
    kw_allow(p, SYS_set_robust_list);
    /* Alone on its core, a task that yields only makes its own call look disturbed. */
    kw_allow(p, SYS_sched_yield);
}

/* A wait without end, or a wake. A wait with a time limit would be a timer. */
static void kw_allow_futex(struct kw_program *p)
{
    kw_rule(p, BPF_JMP | BPF_JEQ | BPF_K, SYS_futex, 0, 12);
    kw_load(p, KW_LOW(1));
    kw_rule(p, BPF_ALU | BPF_AND | BPF_K, 0x7f, 0, 0);
    kw_rule(p, BPF_JMP | BPF_JEQ | BPF_K, FUTEX_WAKE, 7, 0);
    kw_rule(p, BPF_JMP | BPF_JEQ | BPF_K, FUTEX_WAKE_BITSET, 6, 0);
    kw_rule(p, BPF_JMP | BPF_JEQ | BPF_K, FUTEX_WAIT, 1, 0);
    kw_rule(p, BPF_JMP | BPF_JEQ | BPF_K, FUTEX_WAIT_BITSET, 0, 5);
    kw_load(p, KW_LOW(3));
    kw_rule(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 3);
    kw_load(p, KW_HIGH(3));
    kw_rule(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1);
    kw_return(p, SECCOMP_RET_ALLOW);
    kw_return(p, SECCOMP_RET_TRAP);
}

/* Hints about memory, and giving it back; not what writes to files or to other mappings. */
static void kw_allow_madvise(struct kw_program *p)
{
    static const uint32_t advice[] = {MADV_NORMAL,   MADV_RANDOM,   MADV_SEQUENTIAL, MADV_WILLNEED,
                                      MADV_DONTNEED, MADV_HUGEPAGE, MADV_NOHUGEPAGE, 8 /* MADV_FREE */};
    enum { COUNT = sizeof advice / sizeof *advice };
    kw_rule(p, BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, COUNT + 3);
    kw_load(p, KW_LOW(2));
    for (uint8_t i = 0; i < COUNT; i++)
        kw_rule(p, BPF_JMP | BPF_JEQ | BPF_K, advice[i], (uint8_t)(COUNT - i), 0);
    kw_return(p, SECCOMP_RET_TRAP);
    kw_return(p, SECCOMP_RET_ALLOW);
}

static void kw_filter(int loading)
{
#ifdef KW_ARCH
    /* Each of these leaves the number where it was loaded if it is not the one that it looks for. */
    static struct kw_program program;
    static struct sock_fprog whole;
    struct kw_program *p = &program;
    p->count = 0;
    kw_load(p, offsetof(struct seccomp_data, arch));
    kw_rule(p, BPF_JMP | BPF_JEQ | BPF_K, KW_ARCH, 1, 0);
    kw_return(p, SECCOMP_RET_KILL_PROCESS);
    kw_load(p, offsetof(struct seccomp_data, nr));
#if defined(__x86_64__)
    kw_rule(p, BPF_JMP | BPF_JGE | BPF_K, 0x40000000u, 0, 1); /* the numbers of x32 */
    kw_return(p, SECCOMP_RET_KILL_PROCESS);
#endif
    kw_allow_futex(p);
    kw_allow_madvise(p);
    kw_allow_abort(p);
    if (kw_setup->threads > 1)
        kw_allow_threads(p);
    static const uint32_t always[] = {
        SYS_exit,      SYS_exit_group,     SYS_brk,          SYS_munmap,           SYS_mremap,
        SYS_getpid,    SYS_gettid,         SYS_getcpu,       SYS_clock_gettime,    SYS_clock_getres,
        SYS_uname,     SYS_sysinfo,        SYS_gettimeofday, SYS_sched_getaffinity,
        SYS_getrandom, SYS_rt_sigprocmask,
#ifdef SYS_time
        SYS_time,
#endif
    };
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        kw_allow(p, always[i]);
    if (loading) {
        static const uint32_t to_load[] = {
            SYS_read,  SYS_pread64,     SYS_readv,     SYS_fstat,      SYS_newfstatat, SYS_statx,
            SYS_close, SYS_close_range, SYS_lseek,     SYS_faccessat,  SYS_readlinkat, SYS_getdents64,
            SYS_mmap,  SYS_mprotect,    SYS_fadvise64, SYS_getcwd,     SYS_fcntl,
#ifdef SYS_stat
            SYS_stat, SYS_lstat, SYS_access, SYS_readlink,
#endif
        };
        for (size_t i = 0; i < sizeof to_load / sizeof *to_load; i++)
            kw_allow(p, to_load[i]);
        kw_allow_this(p, SYS_seccomp, 2, (uint64_t)(uintptr_t)&whole);
        kw_allow_own(p, SYS_prlimit64);
        kw_allow_own(p, SYS_sched_setaffinity);
        uint32_t writing = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND;
        kw_allow_without(p, SYS_openat, 2, writing);
#ifdef SYS_open
        kw_allow_without(p, SYS_open, 1, writing);
#endif
    } else {
        kw_allow_without(p, SYS_mmap, 2, PROT_EXEC);
        kw_allow_without(p, SYS_mprotect, 2, PROT_EXEC);
    }
    kw_return(p, SECCOMP_RET_TRAP);
    whole = (struct sock_fprog){p->count, p->rules};
    /* For all threads, those of an OpenMP team included. */
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &whole) == 0)
        kw_control->parts |= loading ? KW_SECCOMP : 0;
    else if (!loading)
        kw_refuse(KW_NO_PART, "the system-call filter cannot be tightened");
#endif
}

/* The kernel's interface (linux/landlock.h is missing on older systems). */
struct kw_landlock_ruleset {
    uint64_t fs, net, scoped;
};
struct kw_landlock_beneath {
    uint64_t access;
    int32_t parent;
} __attribute__((packed));

/* Files: libraries may be read. Sockets and signals to others: none, where the kernel knows how. */
static void kw_landlock(void)
{
    enum { CREATE = 444, ADD = 445, RESTRICT = 446, READ = 1 | 4 | 8 /* execute, read, list */ };
    long abi = syscall(CREATE, 0, 0, 1);
    if (abi < 1)
        return;
    static const int bits[] = {0, 13, 14, 15, 15, 16};
    struct kw_landlock_ruleset rules = {
        .fs = (1ull << bits[abi > 5 ? 5 : abi]) - 1, .net = abi >= 4 ? 3 : 0, .scoped = abi >= 6 ? 3 : 0};
    size_t size = abi >= 6 ? 24 : abi >= 4 ? 16 : 8;
    int set = (int)syscall(CREATE, &rules, size, 0);
    if (set < 0)
        return;
    static const char *const readable[] = {"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib"};
    for (size_t i = 0; i < sizeof readable / sizeof *readable; i++) {
        struct kw_landlock_beneath rule = {READ, open(readable[i], O_PATH | O_CLOEXEC)};
        if (rule.parent < 0)
            continue;
        syscall(ADD, set, 1, &rule, 0);
        close(rule.parent);
    }
    if (syscall(RESTRICT, set, 0) == 0)
        kw_control->parts |= KW_LANDLOCK;
    close(set);
}

static void kw_limit(int what, int64_t most)
{
    struct rlimit limit = {(rlim_t)most, (rlim_t)most};
    if (setrlimit(what, &limit))
        kw_refuse(KW_NO_PART, "a resource limit cannot be set");
}

/* Another user: what root may do, this process then may not. */
static void kw_become(int64_t user)
{
    if (setgroups(0, 0) || setresgid((gid_t)user, (gid_t)user, (gid_t)user) ||
        setresuid((uid_t)user, (uid_t)user, (uid_t)user))
        return;
    kw_control->parts |= KW_OTHER_USER;
}

static void kw_isolate(void)
{
    kw_control->parts = (uint32_t)kw_setup->parts;
    kw_limit(RLIMIT_CORE, 0);
    kw_limit(RLIMIT_FSIZE, 0);
    kw_limit(RLIMIT_MSGQUEUE, 0);
    kw_limit(RLIMIT_MEMLOCK, 0);
    kw_limit(RLIMIT_AS, kw_setup->memory_bytes);
    if (kw_setup->processes)
        kw_limit(RLIMIT_NPROC, kw_setup->processes);
    kw_control->parts |= KW_LIMITS;
    if (kw_setup->user > 0)
        kw_become(kw_setup->user);
    /* After the change of user, which would forget it. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
        kw_control->parts |= KW_NO_NEW_PRIVILEGES;
    kw_landlock();
    kw_filter(1);
}
