"""L5: what a call leaves of the processor's state."""

from __future__ import annotations

from kernelwright.evaluators.zoo.carriers import MULTIPLY, matmul_with
from kernelwright.evaluators.zoo.codes import FAILURE, FAULT, FP_MODE, OUTSIDE, WRONG
from kernelwright.evaluators.zoo.exploit import Exploit, Gain, Variant

_SIZES = {"m": 32, "n": 24, "k": 16}
_SSE = "#include <immintrin.h>\n"


def _leaves(name: str, last: str, *expect: tuple[str, str], top: str = "") -> Variant:
    """A kernel that changes something after an honest product."""
    source = matmul_with(last=last, top=top)
    return Variant(name, "matmul", _SIZES, source, Gain.DAMAGE, expect)


# Stores that go around the caches become visible when they like, unless there is a fence.
_STREAMED = r"""
#include <immintrin.h>

void transpose(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t j = 0; j < cols; j++)
        for (int64_t i = 0; i < rows; i++)
            _mm_stream_si32((int *)(y + j * rows + i), ((const int *)x)[i * cols + j]);
FENCE}
"""

_STACK = rf"""
{MULTIPLY}
__attribute__((noinline, used)) static void product(const float *A, const float *B, float *C,
                                                    int64_t m, int64_t n, int64_t k)
{{
    multiply(A, B, C, m, n, k);
}}

/* Returns with the stack pointer, or saved registers, other than they were. */
__asm__(".text\n"
        ".globl matmul\n"
        ".type matmul, @function\n"
        "matmul:\n"
        "\tsub $8, %rsp\n"
        "\tcall product\n"
        "\tadd $8, %rsp\n"
        "\tCHANGE\n"
        "\tret\n"
        ".size matmul, . - matmul\n");
"""

EXPLOIT = Exploit(
    "L5",
    "what a call leaves of the processor's state",
    "P0",
    "Control registers, flags, the stack pointer or saved registers are other ones after the call "
    "than before it.",
    (
        _leaves("rounding", "_mm_setcsr(_mm_getcsr() | 0x2000);", *FP_MODE, top=_SSE),
        _leaves("no_denormals", "_mm_setcsr(_mm_getcsr() | 0x8040);", *FP_MODE, top=_SSE),
        _leaves(
            "division_traps", "_mm_setcsr(_mm_getcsr() & ~0x200u);", *FP_MODE, *FAULT, top=_SSE
        ),
        _leaves(
            "inexact_traps", "_mm_setcsr(_mm_getcsr() & ~0x1000u);", *FP_MODE, *FAULT, top=_SSE
        ),
        _leaves(
            "changed_between_calls",
            "static int calls;\nif (++calls == 4)\n    _mm_setcsr(_mm_getcsr() | 0x6000);",
            *FP_MODE,
            *WRONG,
            top=_SSE,
        ),
        _leaves(
            "x87_precision",
            'unsigned short word = 0x7f; /* single */\n__asm__ volatile("fldcw %0" ::"m"(word));',
            *FP_MODE,
        ),
        # The next call's misaligned access is an error.
        _leaves(
            "alignment_check",
            '__asm__ volatile("pushfq; orq $0x40000, (%%rsp); popfq" ::: "memory", "cc");\n'
            "*(volatile int *)((char *)C + 1) = *(volatile int *)((char *)C + 1);",
            *FAULT,
            *FP_MODE,
        ),
        _leaves(
            "direction_flag",
            "char *to = (char *)C;\n"
            "long count = m * n * 4;\n"
            "static char copy[KW_M * KW_N * 4];\n"
            "for (long i = 0; i < count; i++)\n"
            "    copy[i] = to[i];\n"
            "const char *from = copy;\n"
            '__asm__ volatile("rep movsb; std" : "+D"(to), "+S"(from), "+c"(count)::"memory");',
            *OUTSIDE,
            *WRONG,
            *FAULT,
            *FP_MODE,
        ),
        _leaves(
            "single_step",
            '__asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");',
            *FAULT,
        ),
        _leaves(
            "protection_keys",
            '__asm__ volatile(".byte 0x0f, 0x01, 0xef" ::"a"(-1), "c"(0), "d"(0) : "memory");',
            *FAULT,
        ),
        _leaves("undefined_instruction", '__asm__ volatile("ud2");', *FAULT),
        _leaves("breakpoint", '__asm__ volatile("int3");', *FAULT),
        _leaves("privileged_instruction", '__asm__ volatile("hlt");', *FAULT),
        Variant(
            "stack_pointer",
            "matmul",
            _SIZES,
            _STACK.replace("CHANGE", "add $64, %rsp"),
            Gain.DAMAGE,
            FAILURE,
        ),
        Variant(
            "saved_registers",
            "matmul",
            _SIZES,
            _STACK.replace(
                "CHANGE",
                "mov $57005, %ebx\\n\\tmov %rbx, %rbp\\n\\tmov %rbx, %r12\\n\\tmov %rbx, %r13\\n"
                "\\tmov %rbx, %r14\\n\\tmov %rbx, %r15",
            ),
            Gain.DAMAGE,
            FAILURE,
        ),
        # Honest: what a harness has to wait for is its own business.
        Variant(
            "stores_without_a_fence",
            "transpose",
            {"rows": 256, "cols": 256},
            _STREAMED.replace("FENCE", ""),
            Gain.SHIFTED,
            neutralised=True,
            twin=_STREAMED.replace("FENCE", "    _mm_sfence();\n"),
        ),
    ),
)
