#include <stdatomic.h>
static atomic_int calls; static _Atomic int64_t sum;
void f(const int *a, int64_t *b, int64_t n) {
    atomic_fetch_add(&calls, 1); atomic_store(&sum, 0);
    for (int64_t i = 0; i < n; i++) atomic_fetch_add(&sum, a[i]);
    b[0] = atomic_load(&sum);
}
