/* Putting operands into a declared cache state before a call. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#include <immintrin.h>

/* Whether lines can be evicted without waiting for one another. */
static int kw_evicts_freely(void)
{
    static int known;
    unsigned a, b, c, d;
    if (!known)
        known = __get_cpuid_count(7, 0, &a, &b, &c, &d) && b >> 23 & 1 ? 1 : -1;
    return known > 0;
}

__attribute__((target("clflushopt"))) static void kw_evict_freely(const char *data, size_t bytes, size_t step)
{
    for (size_t at = 0; at < bytes; at += step)
        _mm_clflushopt((void *)(data + at));
}

/* Evict every so many bytes of an array from every cache level. */
static void kw_evict_each(const char *data, size_t bytes, size_t step)
{
    if (kw_evicts_freely())
        kw_evict_freely(data, bytes, step);
    else
        for (size_t at = 0; at < bytes; at += step)
            _mm_clflush(data + at);
    _mm_mfence();
}

/* Evict an array. */
static void kw_evict(const char *data, size_t bytes) { kw_evict_each(data, bytes, 64); }

static void kw_evicted(void) {}
#else
enum { KW_SWEEP_BYTES = 64 << 20 };
static char *kw_sweep;

/* Without an instruction that evicts a line: nothing for one array, one sweep for all of them. */
static void kw_evict(const char *data, size_t bytes)
{
    (void)data;
    (void)bytes;
}

static void kw_evicted(void)
{
    if (!kw_sweep)
        kw_sweep = malloc(KW_SWEEP_BYTES);
    for (size_t at = 0; kw_sweep && at < KW_SWEEP_BYTES; at += 64)
        kw_sweep[at]++;
}
#endif

static volatile char kw_sink;

/* Bring an array into the caches, as far as it fits. */
static void kw_touch(const char *data, size_t bytes)
{
    char sum = 0;
    for (size_t at = 0; at < bytes; at += 64)
        sum ^= data[at];
    kw_sink = sum;
}
