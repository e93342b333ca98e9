/* What judge and worker share: a control file that both map, and nothing else but the arrays.
 *
 * The judge writes the setup before the worker starts. Afterwards every word that a worker writes is
 * a hint: what loads a kernel shares its address space with it, so the judge follows no pointer and
 * believes no number from here. It asks the clock, the task states and the outputs themselves.
 */
#include <stdatomic.h>
#include <stdint.h>

enum { KW_PAGE = 4096, KW_TEXT = 256 };

/* How far a worker has come. */
enum { KW_STARTED = 1, KW_ISOLATED = 2, KW_LOADED = 3, KW_REFUSED = 4, KW_SIGNALLED = 5 };
/* Why it refuses. */
enum { KW_LIBRARY_MISSING = 1, KW_ENTRY_MISSING = 2, KW_NOT_MAPPED = 3, KW_NO_PART = 4 };
/* Parts of the isolation, as bits; `isolation.py` has the same. */
enum {
    KW_SESSION = 1,
    KW_LIMITS = 2,
    KW_NO_NEW_PRIVILEGES = 4,
    KW_OTHER_USER = 8,
    KW_CLOSED = 16,
    KW_SCRUBBED = 32,
    KW_SECCOMP = 64,
    KW_LANDLOCK = 128,
    KW_PID_NAMESPACE = 256,
    KW_IPC_NAMESPACE = 512
};

struct kw_control {
    /* The call. Each word has a cache line of its own; the judge writes the first two. */
    _Alignas(64) _Atomic uint32_t wake; /* number of the call; a futex */
    _Alignas(64) _Atomic uint32_t bell; /* 1 + first slot, 0: wait */
    _Atomic uint32_t batch; /* slots of the call; 0: no call, visit the pages */
    _Alignas(64) _Atomic uint32_t ready; /* number of the call that the worker is awake for */
    _Alignas(64) _Atomic uint32_t done;  /* number of the call that is over; a futex if blocking */
    /* What became of the worker; for evidence. */
    _Alignas(64) _Atomic uint32_t stage;
    uint32_t why, parts;
    int32_t signal, system_call;
    uint64_t address;
    uint32_t mxcsr, x87;
    char text[KW_TEXT];
};

/* At KW_PAGE in the control file; then come cores, extents, and a record for each array of each slot. */
struct kw_setup {
    int64_t arrays, extents, slots, cores, threads, blocking;
    int64_t base, reserve_bytes;
    int64_t user, memory_bytes, processes, parts;
};

struct kw_place {
    int64_t address, offset, map_bytes, lead, is_input;
};
