"""Which names a procedure may use, because it becomes C: not C's own words, nor what the headers
around generated code declare.

Loops, tensors and extents live inside the function, where they may hide most of what a header
declares; the function itself stands beside the headers and may hide nothing.
"""

from __future__ import annotations

import re

# C's own words, what gcc and clang define without being asked, and what generated code uses.
_WORDS = (
    "auto break case char const continue default do double else enum extern float for goto "
    "if inline int long register restrict return short signed sizeof static struct switch "
    "typedef union unsigned void volatile while main asm typeof linux unix i386 mips sun "
    "math_errhandling free malloc "
    "abort aligned_alloc abs int32_t int64_t uint8_t fabs sqrt exp log tanh erf floor fabsf "
    "sqrtf expf logf tanhf erff floorf ceil ceilf cos cosf pow powf rint rintf sin sinf "
    "trunc truncf "
)
_RESERVED = frozenset(_WORDS.split())
# What looks like a macro or a word of the compiler, like a vector type, or like a name that
# generated code makes up.
_SUSPECT = re.compile(r"[A-Z_][A-Z0-9_]{2,}|_[A-Z_]\w*|[fiu](8|16|32|64)x\d+|kw_.*")

# <math.h>: each of these is there for every floating-point type.
_MATH = (
    "acos acosh asin asinh atan atan2 atanh canonicalize cbrt ceil copysign cos cosh drem erf erfc "
    "exp exp10 exp2 expm1 fabs fdim finite floor fma fmax fmaxmag fmin fminmag fmod frexp fromfp "
    "fromfpx gamma getpayload hypot ilogb isinf isnan j0 j1 jn ldexp lgamma llogb llrint llround "
    "log log10 log1p log2 logb lrint lround modf nan nearbyint nextafter nextdown nexttoward "
    "nextup pow pow10 remainder remquo rint round roundeven scalb scalbln scalbn setpayload "
    "significand sin sincos sinh sqrt tan tanh tgamma totalorder trunc ufromfp ufromfpx y0 y1 yn "
)
# <stdlib.h> and <string.h> with what they include; those with a twin in ``_r`` or ``_l`` once.
_LIBRARY = (
    "a64l alloca arc4random arc4random_buf arc4random_uniform at_quick_exit atexit atof atoi atol "
    "atoll basename bcmp bcopy bsearch bzero calloc canonicalize_file_name cfree clearenv div "
    "drand48 ecvt erand48 exit explicit_bzero fcvt ffs ffsl ffsll gcvt getenv getloadavg getpt "
    "getsubopt grantpt index initstate jrand48 l64a labs lcong48 ldiv llabs lldiv lrand48 mblen "
    "mbstowcs mbtowc memalign memccpy memchr memcmp memcpy memfrob memmem memmove mempcpy memrchr "
    "memset memset_explicit mkdtemp mkostemp mkostemps mkstemp mkstemps mktemp mrand48 nrand48 "
    "on_exit posix_memalign posix_openpt pselect ptsname putenv qecvt qfcvt qgcvt qsort quick_exit "
    "rand random rawmemchr realloc reallocarray realpath rindex rpmatch secure_getenv seed48 "
    "select setenv setstate sigabbrev_np sigdescr_np srand srand48 srandom stpcpy stpncpy "
    "strcasecmp strcasestr strcat strchr strchrnul strcmp strcoll strcpy strcspn strdup strerror "
    "strerrordesc_np strerrorname_np strfromd strfromf strfroml strfry strlcat strlcpy strlen "
    "strncasecmp strncat strncmp strncpy strndup strnlen strpbrk strrchr strsep strsignal strspn "
    "strstr strtod strtof strtok strtol strtold strtoll strtoq strtoul strtoull strtouq strverscmp "
    "strxfrm system unlockpt unsetenv valloc wcstombs wctomb "
)
_TYPES = (
    "blkcnt_t blksize_t caddr_t clock_t clockid_t daddr_t dev_t div_t double_t fd_mask fd_set "
    "float_t fsblkcnt_t fsfilcnt_t fsid_t gid_t id_t ino_t intmax_t intptr_t key_t ldiv_t lldiv_t "
    "locale_t loff_t max_align_t mode_t nlink_t off_t pid_t ptrdiff_t quad_t register_t sigset_t "
    "size_t ssize_t suseconds_t time_t timer_t u_char u_int u_long u_quad_t u_short uid_t uint "
    "uintmax_t uintptr_t ulong useconds_t ushort wchar_t "
)
# Macros that a name in front of a parameter list would call, and the one variable.
_MACROS = (
    "fpclassify isfinite isgreater isgreaterequal isless islessequal islessgreater isnormal "
    "isunordered issignaling iseqsig issubnormal iszero signbit signgam strdupa strndupa "
)
_DECLARED = frozenset((_LIBRARY + _TYPES + _MACROS).split())
_DECLARED_ALIKE = re.compile(
    rf"({'|'.join(_MATH.split())})(f|l|f16|f32x?|f64x?|f128)?(_r)?"
    rf"|({'|'.join(_LIBRARY.split())})(_r|_l)"
    r"|u_?int(8|16|32|64)_t|u?int(_fast|_least)?(8|16|32|64)_t|pthread_\w+|(be|le)(16|32|64)toh"
    r"|hto(be|le)(16|32|64)|(omp|ompx|kmpc|GOMP|gomp)_\w+|_\w*"
)


def is_identifier(name: object) -> bool:
    """Whether something is an identifier to C and Python alike."""
    return isinstance(name, str) and name.isidentifier() and name.isascii()


def is_free(name: str) -> bool:
    """Whether C, its compilers and generated code leave a name to a loop, tensor or extent."""
    return name not in _RESERVED and not _SUSPECT.fullmatch(name)


def is_free_function(name: str) -> bool:
    """Whether a name is left to a whole procedure, which stands among what the headers
    ``<math.h>``, ``<stdint.h>``, ``<stdlib.h>`` and ``<string.h>`` declare.
    """
    return is_free(name) and name not in _DECLARED and not _DECLARED_ALIKE.fullmatch(name)
