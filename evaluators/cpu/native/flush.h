/* Putting operands into a declared cache state before a call. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#if defined(__x86_64__) || defined(__i386__)
#include <emmintrin.h>

/* Evict an array from every cache level. */
static void kw_evict(const char *data, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += 64)
        _mm_clflush(data + at);
    _mm_mfence();
}

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
