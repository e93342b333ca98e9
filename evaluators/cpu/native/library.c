/* The worker's side of the call for a process that is Python: a library's function on NumPy arrays. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdlib.h>

#include "serve.h"

/* Map everything; the arrays' places are then at `kw_library_places`. */
const struct kw_place *kw_library_start(int64_t control_bytes)
{
    kw_heap = sbrk(0);
    kw_map_control((size_t)control_bytes);
    kw_map_arrays();
    kw_tell(KW_ISOLATED);
    kw_await_word();
    return kw_places;
}

void kw_library_refuse(const char *text) { kw_refuse(KW_LIBRARY_MISSING, text); }

void kw_library_serve(void (*run)(uint32_t))
{
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int64_t i = 0; i < kw_setup->cores; i++)
        CPU_SET((int)kw_cores[i], &set);
    if (kw_setup->cores)
        sched_setaffinity(0, sizeof set, &set);
    kw_tell(KW_LOADED);
    kw_serve(run, 1);
}
