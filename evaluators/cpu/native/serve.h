/* A worker's side of the call: map the arrays, then wake, ready, bell, run, done. */
#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "flush.h"
#include "protocol.h"

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
static inline void kw_pause(void) { _mm_pause(); }
/* Streaming stores are not ordered with others. */
static inline void kw_settle(void) { _mm_sfence(); }
static void kw_visit_pages(const char *from, size_t bytes) { kw_evict_each(from, bytes, KW_PAGE); }
#else
static inline void kw_pause(void) {}
static inline void kw_settle(void) {}
static void kw_visit_pages(const char *from, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += KW_PAGE)
        (void)*(const volatile char *)(from + at);
}
#endif

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

enum { KW_CONTROL_FD = 3, KW_INPUTS_FD = 4, KW_OUTPUTS_FD = 5, KW_LIBRARY_FD = 6 };

static struct kw_control *kw_control;
static const struct kw_setup *kw_setup;
static const int64_t *kw_cores, *kw_extents;
static const struct kw_place *kw_places;

static long kw_futex(_Atomic uint32_t *word, int op, uint32_t value)
{
    return syscall(SYS_futex, word, op, value, 0, 0, 0);
}

static void kw_tell(uint32_t stage)
{
    atomic_store_explicit(&kw_control->stage, stage, memory_order_release);
    kw_futex((_Atomic uint32_t *)&kw_control->stage, FUTEX_WAKE, 1);
}

_Noreturn static void kw_refuse(uint32_t why, const char *text)
{
    kw_control->why = why;
    strncpy(kw_control->text, text ? text : "", KW_TEXT - 1);
    kw_tell(KW_REFUSED);
    _exit(2);
}

/* The control file; the setup is copied out of it, for the judge alone knows what it wrote there. */
static void kw_map_control(size_t bytes)
{
    char *file = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, KW_CONTROL_FD, 0);
    if (file == MAP_FAILED)
        _exit(3);
    kw_control = (struct kw_control *)file;
    char *copy = malloc(bytes - KW_PAGE);
    if (!copy)
        _exit(3);
    memcpy(copy, file + KW_PAGE, bytes - KW_PAGE);
    munmap(file + KW_PAGE, bytes - KW_PAGE);
    kw_setup = (const struct kw_setup *)copy;
    kw_cores = (const int64_t *)(kw_setup + 1);
    kw_extents = kw_cores + kw_setup->cores;
    kw_places = (const struct kw_place *)(kw_extents + kw_setup->extents);
}

/* Every array at the address that the judge chose, among pages that may not be touched. */
static void kw_map_arrays(void)
{
    char *base = (char *)kw_setup->base;
    int hidden = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
    char *room = mmap(base, (size_t)kw_setup->reserve_bytes, PROT_NONE, hidden, -1, 0);
    if (room != base)
        kw_refuse(KW_NOT_MAPPED, room == MAP_FAILED ? strerror(errno) : "the addresses are taken");
    for (int64_t i = 0; i < kw_setup->arrays * kw_setup->slots; i++) {
        const struct kw_place *at = &kw_places[i];
        int protection = at->is_input ? PROT_READ : PROT_READ | PROT_WRITE;
        char *map = mmap((char *)at->address, (size_t)at->map_bytes, protection,
                         MAP_SHARED | MAP_FIXED | MAP_POPULATE,
                         at->is_input ? KW_INPUTS_FD : KW_OUTPUTS_FD, (off_t)at->offset);
        if (map == MAP_FAILED)
            kw_refuse(KW_NOT_MAPPED, strerror(errno));
    }
}

/* Sleep until the judge has looked at what was given up; its word is the first wake-up. */
static void kw_await_word(void)
{
    while (!atomic_load_explicit(&kw_control->wake, memory_order_acquire))
        kw_futex(&kw_control->wake, FUTEX_WAIT, 0);
}

/* Where the heap began before anything was put on it. */
static char *kw_heap;

/* Look at every page of the arrays and of the heap, so that the next call finds their translations: a core that was
 * idle for a while has lost them, and walking the tables of a virtual machine again takes microseconds a page. What
 * is looked at is not in a cache afterwards where a line can be evicted. */
static void kw_visit(void)
{
    enum { MOST = 1 << 14, HEAP = 1 << 13 };
    size_t pages = 0, arrays = (size_t)kw_setup->arrays * (size_t)kw_setup->slots;
    for (size_t i = 0; i < arrays; i++)
        pages += (size_t)kw_places[i].map_bytes / KW_PAGE;
    /* Where they are so many, calls take so long that it does not show. */
    if (pages > MOST)
        return;
    char *end = sbrk(0);
    size_t heap = end > kw_heap ? (size_t)(end - kw_heap) : 0;
    if (heap <= (size_t)HEAP * KW_PAGE)
        kw_visit_pages(kw_heap, heap);
    /* Last, as it is the most that counts: a core remembers some two thousand pages. */
    for (size_t i = 0; i < arrays; i++)
        kw_visit_pages((const char *)kw_places[i].address, (size_t)kw_places[i].map_bytes);
}

/* Serve calls for ever; `call` is the number of the last wake-up so far. */
_Noreturn static void kw_serve(void (*run)(uint32_t slot), uint32_t call)
{
    for (;;) {
        uint32_t wake;
        while ((wake = atomic_load_explicit(&kw_control->wake, memory_order_acquire)) == call)
            kw_futex(&kw_control->wake, FUTEX_WAIT, call);
        call = wake;
        atomic_store_explicit(&kw_control->ready, call, memory_order_release);
        uint32_t bell;
        while (!(bell = atomic_load_explicit(&kw_control->bell, memory_order_acquire)))
            kw_pause();
        uint32_t batch = atomic_load_explicit(&kw_control->batch, memory_order_relaxed);
        if (!batch)
            kw_visit();
        for (uint32_t i = 0; i < batch; i++)
            run(bell - 1 + i);
        kw_settle();
        atomic_store_explicit(&kw_control->done, call, memory_order_release);
        if (kw_setup->blocking)
            kw_futex(&kw_control->done, FUTEX_WAKE, 1);
#if defined(__x86_64__) || defined(__i386__)
        kw_control->mxcsr = _mm_getcsr();
        uint16_t word;
        __asm__ volatile("fnstcw %0" : "=m"(word));
        kw_control->x87 = word;
#endif
    }
}
