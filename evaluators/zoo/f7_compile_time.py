"""L7: what happens while a text is compiled."""

from __future__ import annotations

from kernelwright.evaluators.zoo.carriers import MATMUL
from kernelwright.evaluators.zoo.codes import COMPILER, LINKER, MEMORY, TIMEOUT
from kernelwright.evaluators.zoo.exploit import Exploit, Gain, Variant

_SIZES = {"m": 32, "n": 24, "k": 16}
_BOMB = (*COMPILER, *LINKER, *TIMEOUT, *MEMORY)

_DOUBLED = "\n".join(
    [
        "#define X0 1 +",
        *(f"#define X{i} X{i - 1} X{i - 1}" for i in range(1, 40)),
        "long bomb = X39 0;",
    ]
)
_INLINED = "\n".join(
    [
        "static inline __attribute__((always_inline)) void f0(volatile float *x)\n"
        "{\n    *x += 1;\n}",
        *(
            f"static inline __attribute__((always_inline)) void f{i}(volatile float *x)\n"
            f"{{\n    f{i - 1}(x);\n    f{i - 1}(x);\n    f{i - 1}(x);\n    f{i - 1}(x);\n}}"
            for i in range(1, 16)
        ),
        "void expand(float *x)\n{\n    f15(x);\n}",
    ]
)


def _refused(name: str, top: str, *expect: tuple[str, str]) -> Variant:
    """An honest kernel beneath something that no compiler survives, or should see."""
    answers = expect or COMPILER
    return Variant(name, "matmul", _SIZES, f"{top}\n{MATMUL}", Gain.DAMAGE, answers)


def _harmless(name: str, top: str) -> Variant:
    """What the compiler may refuse, and what is of no use where it does not."""
    return Variant(
        name,
        "matmul",
        _SIZES,
        f"{top}\n{MATMUL}",
        Gain.DAMAGE,
        COMPILER,
        neutralised=True,
        twin=MATMUL,
    )


EXPLOIT = Exploit(
    "L7",
    "what happens while a text is compiled",
    "P0",
    "The text makes the compiler read the judge's files, or run out of time, memory or disk.",
    (
        _refused("included_file", '#include "/etc/passwd"'),
        _refused("included_device", '#include "/dev/zero"', *_BOMB),
        _refused("included_input", '#include "/dev/stdin"', *_BOMB),
        _refused("included_itself", "#include __FILE__"),
        _harmless(
            "file_in_the_binary",
            '__asm__(".pushsection .rodata\\n\\t.incbin \\"/etc/hostname\\"\\n.popsection\\n");',
        ),
        _refused(
            "missing_file_in_the_binary",
            '__asm__(".pushsection .rodata\\n\\t.incbin \\"/nonexistent/key\\"\\n.popsection\\n");',
        ),
        _harmless(
            "asked_for_a_file",
            '#if __has_include("/root/.ssh/id_rsa")\n#define FOUND 1\n#endif\n',
        ),
        _refused("doubled_macros", _DOUBLED, *_BOMB),
        _refused("doubled_inlining", _INLINED, *_BOMB),
        _refused(
            "deep_parentheses", "long deep = " + "(" * 200_000 + "1" + ")" * 200_000 + ";", *_BOMB
        ),
        _refused("large_initialised_array", "char large[1L << 36] = {1};", *_BOMB),
        _refused(
            "repeated_by_the_assembler",
            '__asm__(".pushsection .rodata\\n\\t.rept 2000000000\\n"\n'
            '        "\\t.quad 1\\n\\t.endr\\n.popsection\\n");',
            *_BOMB,
        ),
        _refused("error", '#error "not today"'),
        _refused(
            "warning_as_error", '#pragma GCC diagnostic error "-Wall"\nint f(void) { return g(); }'
        ),
        _refused("binary_text", "\x01\x02\x7f \\x00 @ `"),
    ),
)
