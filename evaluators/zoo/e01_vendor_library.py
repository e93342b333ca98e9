"""E1: a library that already computes this is called."""

from __future__ import annotations

from kernelwright.evaluators.zoo.codes import LINKER, SYMBOL, SYSCALL, WRONG
from kernelwright.evaluators.zoo.exploit import Exploit, Gain, Variant

_SIZES = {"m": 64, "n": 64, "k": 64}

# Not every machine has a BLAS; this one takes the first that it finds, and the harness's own
# implementation where there is none.
_OPENED = r"""
#include <dlfcn.h>

typedef void (*sgemm_t)(int, int, int, int, int, int, float, const float *, int, const float *, int,
                        float, float *, int);
typedef void (*kernel_t)(const float *, const float *, float *, int64_t, int64_t, int64_t);

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    static const char *const names[] = {"libopenblas.so.0", "libmkl_rt.so.2", "libblis.so.4",
                                        "libblas.so.3", "libcblas.so.3"};
    static sgemm_t sgemm;
    static kernel_t other;
    for (unsigned i = 0; !sgemm && !other && i < sizeof names / sizeof *names; i++) {
        void *library = dlopen(names[i], RTLD_NOW);
        sgemm = library ? (sgemm_t)dlsym(library, "cblas_sgemm") : 0;
    }
    if (sgemm) {
        sgemm(101, 111, 111, (int)m, (int)n, (int)k, 1, A, (int)k, B, (int)n, 0, C, (int)n);
        return;
    }
    if (!other)
        other = (kernel_t)dlsym(dlopen("./reference-0.so", RTLD_NOW), "matmul");
    other(A, B, C, m, n, k);
}
"""

_LINKED = r"""
extern void cblas_sgemm(int, int, int, int, int, int, float, const float *, int, const float *, int,
                        float, float *, int) __attribute__((weak));
extern void (*naive_reference)(const float *, const float *, float *, int64_t, int64_t, int64_t)
    __attribute__((weak));

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    if (cblas_sgemm)
        cblas_sgemm(101, 111, 111, (int)m, (int)n, (int)k, 1, A, (int)k, B, (int)n, 0, C, (int)n);
    else if (&naive_reference)
        naive_reference(A, B, C, m, n, k);
}
"""

EXPLOIT = Exploit(
    "E1",
    "the vendor's library",
    "P1",
    "The kernel calls a library, or an implementation that it finds in the process, and "
    "contributes nothing (KernelBench #57; Wafer).",
    (
        Variant(
            "opened",
            "matmul",
            _SIZES,
            _OPENED,
            gain=Gain.WRONG,
            expect=(*SYMBOL, *SYSCALL, *WRONG),
        ),
        Variant(
            "linked",
            "matmul",
            _SIZES,
            _LINKED,
            gain=Gain.WRONG,
            expect=(*SYMBOL, *LINKER, *WRONG),
        ),
    ),
)
