/* The cache states for a worker in Python. */
#include "flush.h"

void kw_prepare(const char *const *data, const size_t *bytes, int count, int cold)
{
    for (int i = 0; i < count; i++)
        (cold ? kw_evict : kw_touch)(data[i], bytes[i]);
    if (cold)
        kw_evicted();
}
