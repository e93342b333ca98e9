"""The symbols that a kernel may want from others: mathematics, memory, and what a compiler calls by
itself. For any other, why a kernel has no use for it.
"""

from __future__ import annotations

import re


def _any(patterns: str) -> re.Pattern[str]:
    """What matches one of the patterns in a text; blanks and line ends lie between them."""
    return re.compile("|".join(patterns.split()))


# C11 7.12 and 7.3 with what later standards and the GNU C library add, before a type's letters.
_FUNCTIONS = _any("""
acos(h|pi)? asin(h|pi)? atan2?(pi)? atanh cbrt ceil copysign cos(h|pi)? drem erfc? exp(2|10)?(m1)?
fabs fdim finite floor fma fmod fmax fmin fm(ax|in)imum(_num)?(_mag)?(_mag_num)? frexp gamma hypot
ilogb isinf isnan j[01n] ldexp lgamma llogb l?lrint l?lround log(10|2)?(p1)? log1p logb modf nan
nearbyint nexttoward next(after|up|down) pow(10|n|r)? remainder remquo rint rootn round(even)? rsqrt
scalb scalbl?n significand sin(h|pi)? sincos sqrt tan(h|pi)? tgamma trunc y[01n] compoundn expm1
c(abs|arg|imag|real|onj|proj|pow|sqrt|exp|log|log10) c(a?(sin|cos|tan)h?)
""").pattern
_TYPES = "(f|l|f16|bf16|f32x?|f64x?|f128)?"
_MATHS = _any(rf"""
({_FUNCTIONS}){_TYPES} lgamma(f|l|f32|f64)?_r signgam
[fd](add|sub|mul|div|sqrt|fma)l? f(32|64)x?(add|sub|mul|div|sqrt|fma)f\w+
__(signbit|fpclassify|finite|isinf|isnan|issignaling|iscanonical|iseqsig){_TYPES} __\w+_finite
_ZGV\w+
""")
# Rounding and exceptions (C11 7.6); what a call leaves of them is looked at after it.
_ENVIRONMENT = _any("fe(clear|get|raise|set|test|hold|update)\\w+")
_MEMORY = _any("""
malloc calloc realloc reallocarray free aligned_alloc posix_memalign memalign
mem(chr|rchr|cmp|cpy|ccpy|pcpy|move|set|mem) rawmemchr bcmp bcopy bzero explicit_bzero
__mem(cpy|pcpy|move|set)_chk
""")
_TEXT = _any("""
strn?cpy stp?n?cpy strn?cat strn?(case)?cmp strr?chr strchrnul strn?len strc?spn strpbrk strstr
strtok_r strsep __st[rp]n?cpy_chk __strn?cat_chk (__isoc23_)?strto(l|ll|ul|ull|imax|umax|f|d|ld)
ato(i|l|ll|f) toupper tolower is(alnum|alpha|digit|lower|upper|space|xdigit|punct) __ctype_\\w+_loc
""")
_ALGORITHMS = _any("qsort qsort_r bsearch (l|ll|imax)?(abs|div) ffsl?l?")
# What a compiler and the headers' macros call: assertions, checks, cleanups, thread-local memory.
_COMPILERS = _any("""
abort __assert __assert_fail __assert_perror_fail __stack_chk_(fail|guard) __chk_fail
__fortify_fail __errno_location __tls_get_addr __cxa_finalize __gmon_start__ _ITM_\\w+
_GLOBAL_OFFSET_TABLE_ __dso_handle _Unwind_Resume __gcc_personality_v0
""")
# libgcc's and compiler-rt's arithmetic: an operation, and the machine modes of its operands.
_MODES = "([qhsdtxbo][ifcd]){1,2}"
_ARITHMETIC = _any(rf"""
__(abs|add|sub|mul|neg|div|mod|udiv|umod|divmod|udivmod|powi|ashl|ashr|lshr)v?{_MODES}[234]
__(u?cmp|clz|ctz|clrsb|ffs|parity|popcount|bswap|eq|ne|lt|le|gt|ge|unord){_MODES}2
__(fix|fixuns|float|floatun|extend|trunc){_MODES}2? __(bid|dpd)_\w+ __gnu_[hdf]2[hdf]_\w+
__(atomic|sync)_\w+
""")
_OPENMP = _any("GOMP_\\w+ omp_\\w+ __kmpc_\\w+ __kmp_\\w+ kmp_\\w+")
_ALLOWED = (
    _MATHS,
    _ENVIRONMENT,
    _MEMORY,
    _TEXT,
    _ALGORITHMS,
    _COMPILERS,
    _ARITHMETIC,
)
# Why a kernel has no use for a symbol, and what is expected instead; the first that fits.
_REASONS = (
    (
        _OPENMP,
        "OpenMP is there for target.threads above 1 or the flag -fopenmp, and nowhere else",
    ),
    (
        _any("""
        cblas_\\w+ LAPACKE_\\w+ c?lapack_\\w+ openblas_\\w+ (mkl|MKL)_\\w+ v[sdcm][A-Z]\\w+ bli_\\w+
        fftw[fl]?_\\w+ ipps\\w+ dnnl_\\w+ nnp_\\w+ xnn_\\w+ armpl_\\w+ vDSP_\\w+ BNNS\\w+ gsl_\\w+
        Sleef_\\w+ [sdczi][a-z]{2,6}\\d?_
        """),
        "expected the judged kernel's own code; a library that computes this already is what "
        "kernels are compared with",
    ),
    (
        _any("""
        v?[fsd]?n?w?printf va?sn?printf asprintf __\\w*printf_chk _IO_\\w+ f?put[cs]\\w* putchar\\w*
        perror fwrite\\w* fflush\\w* std(out|err|in)
        """),
        "nobody reads what a kernel prints: expected its outputs alone, so remove it once it has "
        "helped",
    ),
    (
        _any("""
        _?exit _Exit quick_exit raise kill tgkill pthread_(exit|kill) errx? error _?longjmp
        siglongjmp __longjmp_chk _?setjmp __sigsetjmp __cxa_throw
        """),
        "expected that a kernel returns; one that cannot go on calls abort()",
    ),
    (
        _any("""
        on_exit atexit at_quick_exit __cxa_atexit __cxa_at_quick_exit __cxa_thread_atexit\\w*
        __register_atfork pthread_atfork __register_frame\\w*
        """),
        "it has code called after the kernel has returned: expected all work in the call",
    ),
    (
        _any("""
        (pthread|thrd|mtx|cnd|tss|sem|sched)_\\w+ clone\\d? v?fork posix_spawnp? exec[lv]\\w*
        system popen futex\\w* wait(pid|id|3|4)?
        """),
        "expected no threads or processes of a kernel's own; OpenMP's are there with "
        "target.threads",
    ),
    (
        _any("""
        clock\\w* times? ftime gettimeofday timer_\\w+ timerfd_\\w+ setitimer u?alarm u?sleep
        nanosleep timespec_get getrusage
        """),
        "expected no clock in a kernel, which has to do the same work at any time",
    ),
    (
        _any("dl(open|mopen|sym|vsym|close|addr1?|info|_\\w+) _dl_\\w+ __libc_dl\\w+ _rtld_\\w+"),
        "expected no loading of other code: what a kernel calls has to be linked, where it can be "
        "seen",
    ),
    (_any("(bsd_)?signal (__)?sig[a-z]+"), "expected no signal handlers in a kernel"),
    (
        _any("s?rand(48|om|om_r)? rand_r [delmnj]rand48 arc4random\\w* getrandom getentropy"),
        "expected the same outputs for the same inputs, and no random numbers",
    ),
)
_OTHER = (
    "expected symbols of the C library's mathematics and memory functions, and what compilers call "
    "by themselves; the worker lets little else of the system through"
)


def allowed(name: str, *, openmp: bool) -> bool:
    """Whether any kernel may want this symbol; OpenMP's only where that is in play."""
    patterns = (*_ALLOWED, _OPENMP) if openmp else _ALLOWED
    return any(pattern.fullmatch(name) for pattern in patterns)


def reason(name: str) -> str:
    """Why a kernel has no use for a symbol that is not allowed, and what is expected instead."""
    return next((why for pattern, why in _REASONS if pattern.fullmatch(name)), _OTHER)


_SHADOWED = _any("""
abort aligned_alloc calloc clock_gettime clone dl_iterate_phdr dlclose dlopen dlsym environ _?exit
_Exit fork free futex longjmp main malloc memcmp memcpy memmove memset mmap mprotect munmap
posix_memalign prctl pthread_\\w+ realloc seccomp sigaction sigaltstack syscall _start
__(errno_location|libc_start_main|memcpy_chk|stack_chk_fail|tls_get_addr)
GOMP_\\w+ omp_\\w+ kmp_\\w+ __kmpc?_\\w+
""")


def shadows(name: str) -> bool:
    """Whether an export of this name would stand for one of the C library's, OpenMP's or the
    worker's.
    """
    return _SHADOWED.fullmatch(name) is not None
