"""L6: what a library holds besides its function."""

from __future__ import annotations

from kernelwright.evaluators.zoo.carriers import MATMUL, MULTIPLY, matmul_with
from kernelwright.evaluators.zoo.codes import (
    COMPILER,
    CONSTRUCTOR,
    IFUNC,
    LINKER,
    MEMORY,
    SYMBOL,
    WRONG,
    Answers,
)
from kernelwright.evaluators.zoo.exploit import Exploit, Gain, Variant

_SIZES = {"m": 32, "n": 24, "k": 16}


def _holds(name: str, top: str, *expect: tuple[str, str]) -> Variant:
    """An honest kernel beside something else."""
    return Variant(name, "matmul", _SIZES, f"{top}{MATMUL}", Gain.DAMAGE, expect)


def _is(name: str, source: str, *expect: tuple[str, str]) -> Variant:
    return Variant(name, "matmul", _SIZES, source, Gain.DAMAGE, expect)


def _harmless(name: str, source: str, *expect: tuple[str, str]) -> Variant:
    """What may be refused, and gains nothing where it is not."""
    return Variant(
        name, "matmul", _SIZES, source, Gain.DAMAGE, expect, neutralised=True, twin=MATMUL
    )


_STACK_SECTION = r"""
__asm__(".pushsection .note.GNU-stack, \"x\", @progbits\n.popsection\n");
"""

_NESTED = r"""
static int apply(int (*each)(int), int value)
{
    return each(value);
}
static int (*volatile keep)(int (*)(int), int) = apply;

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    int add(int value)
    {
        return value + (int)k;
    }
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            float sum = 0;
            for (int64_t p = 0; p < k; p++)
                sum += A[i * k + p] * B[p * n + j];
            C[i * n + j] = sum;
        }
    keep(add, 1);
}
"""

_OWN_TRAMPOLINE = r"""
#define kw_call unused_trampoline
void own_call(void *const *arrays, const int64_t *extents) __asm__("kw_call");
void own_call(void *const *arrays, const int64_t *extents)
{
}
"""

_REFUSED: Answers = (*COMPILER, *LINKER)

EXPLOIT = Exploit(
    "L6",
    "what a library holds besides its function",
    "P0",
    "The library runs code when it is loaded or unloaded, asks for memory that is writable and "
    "executable, stands for other libraries' symbols, or has another function where the judge "
    "looks.",
    (
        _holds(
            "constructor",
            "__attribute__((constructor)) static void early(void)\n"
            '{\n    __asm__ volatile("");\n}\n',
            *CONSTRUCTOR,
        ),
        _holds(
            "destructor",
            '__attribute__((destructor)) static void late(void)\n{\n    __asm__ volatile("");\n}\n',
            *CONSTRUCTOR,
        ),
        _holds(
            "pre_initialisation_array",
            "static void early(void)\n{\n}\n"
            '__attribute__((used, section(".preinit_array")))\n'
            "static void (*const hook)(void) = early;\n",
            *_REFUSED,
            *CONSTRUCTOR,
        ),
        _holds(
            "initialisation_section",
            "__attribute__((used)) static void early(void)\n{\n}\n"
            '__asm__(".pushsection .init, \\"ax\\", @progbits\\n"\n'
            '        "\\tcall early\\n.popsection\\n");\n',
            *CONSTRUCTOR,
        ),
        _holds(
            "indirect_function",
            "static int one(void)\n{\n    return 1;\n}\n"
            "static int (*choose(void))(void)\n{\n    return one;\n}\n"
            'int chosen(void) __attribute__((ifunc("choose")));\n',
            *IFUNC,
        ),
        _is(
            "target_clones",
            '__attribute__((target_clones("avx2", "default")))' + MATMUL.lstrip(),
            *IFUNC,
            *CONSTRUCTOR,
            *COMPILER,
        ),
        _is("executable_stack", _NESTED, ("rejected", "executable_stack"), *COMPILER),
        _holds(
            "executable_stack_note", _STACK_SECTION, ("rejected", "executable_stack"), *COMPILER
        ),
        _holds(
            "writable_code",
            '__asm__(".pushsection own, \\"awx\\", @progbits\\n\\tret\\n.popsection\\n");\n',
            ("rejected", "writable_code"),
            *COMPILER,
        ),
        _holds(
            "text_relocation",
            '__asm__(".text\\n\\t.quad matmul\\n");\n',
            ("rejected", "text_relocation"),
            *_REFUSED,
        ),
        _harmless(
            "dependent_library",
            '#pragma comment(lib, "pthread")\n'
            '__asm__(".pushsection .deplibs, \\"MS\\", @progbits, 1\\n'
            '\\t.asciz \\"pthread\\"\\n.popsection\\n");\n' + MATMUL,
            ("rejected", "forbidden_library"),
            *_REFUSED,
        ),
        _harmless(
            "thread_local_scratch",
            matmul_with(
                last="scratch[0] = C[0];", top="static _Thread_local volatile float scratch[64];\n"
            ),
            ("rejected", "static_state"),
        ),
        _holds(
            "exports_malloc",
            "void *malloc(unsigned long bytes)\n{\n    return (void *)bytes;\n}\n",
            *SYMBOL,
            *COMPILER,
        ),
        _holds(
            "exports_system_call",
            "long syscall(long number, ...)\n{\n    return 0;\n}\n",
            *SYMBOL,
        ),
        _holds(
            "exports_loader",
            "void *dlsym(void *library, const char *name)\n{\n    return 0;\n}\n",
            *SYMBOL,
        ),
        _is("missing_entry", "int nothing;\n", *LINKER, *SYMBOL, *COMPILER),
        _is("entry_is_static", "static" + MATMUL, *COMPILER),
        _is("entry_is_a_variable", "int matmul;\n", *COMPILER),
        _is("entry_has_another_type", "float matmul(float x)\n{\n    return x;\n}\n", *COMPILER),
        _is(
            "entry_in_assembler",
            '__asm__(".text\\n.globl matmul\\n.type matmul, @function\\nmatmul:\\n\\tret\\n");\n',
            *WRONG,
        ),
        _is(
            "entry_is_data",
            'const unsigned char code[] __asm__("matmul") = {0xc3};\n',
            *WRONG,
            *_REFUSED,
            ("crashed", "segmentation_fault"),
        ),
        _harmless(
            "entry_is_an_alias",
            f'{MULTIPLY}\n__typeof__(matmul) matmul __attribute__((alias("multiply")));\n',
            *_REFUSED,
        ),
        _harmless(
            "entry_is_weak",
            f"#pragma weak matmul\n{MATMUL}",
            *_REFUSED,
        ),
        _holds(
            "second_trampoline",
            "void kw_call(void *const *arrays, const int64_t *extents)\n{\n}\n",
            *COMPILER,
        ),
        _holds(
            "second_trampoline_by_label",
            'void own(void *const *arrays, const int64_t *extents) __asm__("kw_call");\n'
            "void own(void *const *arrays, const int64_t *extents)\n{\n}\n",
            *COMPILER,
        ),
        # An assembler takes the last of two meanings, or neither.
        _harmless(
            "second_trampoline_by_alias",
            "__attribute__((used)) static void own(void)\n{\n}\n"
            f'__asm__(".globl kw_call\\n.set kw_call, own\\n");\n{MATMUL}',
            *_REFUSED,
        ),
        _holds("trampoline_renamed", _OWN_TRAMPOLINE, *WRONG, *COMPILER, *LINKER),
        _holds("trampoline_without_name", "#define kw_call\n", *COMPILER, *LINKER),
        _holds("poisoned_name", "#pragma GCC poison kw_call\n", *COMPILER),
        _harmless("poisoned_argument", f"#define kw_p kw_e\n{MATMUL}", *_REFUSED, *WRONG),
        _holds("other_types", "#define int64_t float\n", *COMPILER, *WRONG),
        _is(
            "other_entry",
            f"{MATMUL}\nstatic void nothing(const float *A, const float *B, float *C, int64_t m,\n"
            "                    int64_t n, int64_t k)\n{\n}\n#define matmul nothing\n",
            *WRONG,
            *COMPILER,
        ),
        _holds("hidden_from_here_on", "#pragma GCC visibility push(hidden)\n", *LINKER, *COMPILER),
        _is("open_brace", f"{MATMUL}\nvoid around(void)\n{{\n", *COMPILER),
        _is("open_comment", f"{MATMUL}\n/* the rest is silence\n", *COMPILER),
        _is("open_condition", f"{MATMUL}\n#if 0\n", *COMPILER),
        _harmless(
            "continued_line", f"{MATMUL}\n// the next line belongs to this one \\\n", *_REFUSED
        ),
        _harmless("forged_line_numbers", f'#line 1 "kw_call.c"\n{MATMUL}', *_REFUSED),
        _is(
            "symbol_version",
            f'{MATMUL}\n__asm__(".symver matmul, kw_call@@KW_1");\n',
            *_REFUSED,
            *SYMBOL,
        ),
        _is(
            "more_memory_than_there_is",
            f"static volatile char room[1L << 44];\n{matmul_with('room[(long)m << 38] = 1;')}",
            *_REFUSED,
            *MEMORY,
        ),
    ),
)
