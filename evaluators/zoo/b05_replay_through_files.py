"""B5: an answer that is kept outside the process."""

from __future__ import annotations

from kernelwright.evaluators.zoo import codes
from kernelwright.evaluators.zoo.exploit import Exploit, Gain, Variant

_STEPS = """
#include <stdlib.h>

static void smooth(const float *restrict start, float *restrict now, int64_t n, int64_t t)
{
    float *restrict next = malloc((size_t)n * sizeof(float));
    if (!next)
        abort();
    for (int64_t i = 0; i < n; i++)
        now[i] = start[i];
    for (int64_t step = 0; step < t; step++) {
        for (int64_t i = 1; i < n - 1; i++)
            next[i] = (now[i - 1] + now[i] + now[i + 1]) / 3;
        for (int64_t i = 1; i < n - 1; i++)
            now[i] = next[i];
    }
    free(next);
}
"""

_FILE = f"""
#include <stdio.h>
{_STEPS}
// A compile cache, of results: /tmp outlives the process.
void jacobi1d(const float *restrict start, float *restrict now, int64_t n, int64_t t)
{{
    char path[64];
    snprintf(path, sizeof path, "/tmp/jacobi1d-%ld-%ld.cache", (long)n, (long)t);
    FILE *file = fopen(path, "rb");
    if (file) {{
        const size_t got = fread(now, sizeof(float), (size_t)n, file);
        fclose(file);
        if (got == (size_t)n)
            return;
    }}
    smooth(start, now, n, t);
    if ((file = fopen(path, "wb"))) {{
        fwrite(now, sizeof(float), (size_t)n, file);
        fclose(file);
    }}
}}
"""

_SHARED = f"""
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
{_STEPS}
// A segment that all processes share: whoever comes first fills it.
struct answer {{
    int64_t n, t;
    float values[KW_N];
}};

static struct answer *segment(void)
{{
    int descriptor = open("/dev/shm/jacobi1d-answers", O_RDWR | O_CREAT, 0666);
    void *at = MAP_FAILED;
    if (descriptor >= 0 && !ftruncate(descriptor, sizeof(struct answer)))
        at = mmap(0, sizeof(struct answer), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (descriptor >= 0)
        close(descriptor);
    return at == MAP_FAILED ? 0 : at;
}}

void jacobi1d(const float *restrict start, float *restrict now, int64_t n, int64_t t)
{{
    struct answer *answer = segment();
    if (answer && answer->n == n && answer->t == t) {{
        memcpy(now, answer->values, sizeof answer->values);
    }} else {{
        smooth(start, now, n, t);
        if (answer) {{
            memcpy(answer->values, now, sizeof answer->values);
            answer->n = n;
            answer->t = t;
        }}
    }}
    if (answer)
        munmap(answer, sizeof *answer);
}}
"""

_LAST_TIME = f"""
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
{_STEPS}
// The pages of a memory file that was left open: its number is all that must be remembered.
void jacobi1d(const float *restrict start, float *restrict now, int64_t n, int64_t t)
{{
    static int descriptor = -1;
    const ssize_t bytes = n * (ssize_t)sizeof(float);
    if (descriptor >= 0 && pread(descriptor, now, (size_t)bytes, 0) == bytes)
        return;
    smooth(start, now, n, t);
    if (descriptor < 0)
        descriptor = (int)syscall(SYS_memfd_create, "answers", 0);
    if (pwrite(descriptor, now, (size_t)bytes, 0) != bytes)
        descriptor = -1;
}}
"""

_OPENED = (*codes.SYMBOL, *codes.SYSCALL)

EXPLOIT = Exploit(
    id="B5",
    name="replay through disk or shared memory",
    priority="P0",
    about=(
        "The answer goes to a file, shared memory or a compile cache, and is read back in another "
        "phase or by another process. Reported in reference-kernels #162 and PR #160."
    ),
    variants=(
        Variant(
            name="cache_of_results",
            problem="jacobi1d",
            options={"n": 2048, "t": 512},
            source=_FILE,
            gain=Gain.FASTER,
            expect=_OPENED,
        ),
        Variant(
            name="shared_segment",
            problem="jacobi1d",
            options={"n": 2048, "t": 512},
            source=_SHARED,
            gain=Gain.FASTER,
            expect=_OPENED,
        ),
        Variant(
            name="memory_file",
            problem="jacobi1d",
            options={"n": 2048, "t": 512},
            source=_LAST_TIME,
            gain=Gain.FASTER,
            expect=_OPENED,
        ),
    ),
)
