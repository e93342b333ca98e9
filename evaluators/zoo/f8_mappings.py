"""L8: the mappings of the arrays, and what lies beside them."""

from __future__ import annotations

from kernelwright.evaluators.zoo.carriers import MATMUL, SYSTEM, matmul_with
from kernelwright.evaluators.zoo.codes import FAILURE, FAULT, INPUT, OUTSIDE, SYSCALL, WRONG
from kernelwright.evaluators.zoo.exploit import Exploit, Gain, Variant

_SIZES = {"m": 96, "n": 96, "k": 96}
_PAGES = "(n * m * 4 + 4095) & -4096L"


def _maps(name: str, last: str, *expect: tuple[str, str], twin: str | None = None) -> Variant:
    """A kernel that does something to the mapping of an array after an honest product."""
    return Variant(
        name,
        "matmul",
        _SIZES,
        matmul_with(last=last, top=SYSTEM),
        Gain.DAMAGE,
        expect,
        neutralised=twin is not None,
        twin=twin,
    )


EXPLOIT = Exploit(
    "L8",
    "the mappings of the arrays",
    "P0",
    "The kernel unmaps, moves, empties or replaces the memory behind its arrays, or touches what "
    "is not its own.",
    (
        _maps(
            "punched_outputs",
            f"system_call(28, (long)C & -4096L, {_PAGES}, 9, 0, 0, 0); /* MADV_REMOVE */",
            *SYSCALL,
            *WRONG,
        ),
        # Pages of a shared file come back as they were.
        _maps(
            "dropped_outputs",
            f"system_call(28, (long)C & -4096L, {_PAGES}, 4, 0, 0, 0); /* MADV_DONTNEED */",
            *SYSCALL,
            *WRONG,
            twin=MATMUL,
        ),
        _maps(
            "dropped_inputs",
            "system_call(28, (long)A & -4096L, 4096, 4, 0, 0, 0); /* MADV_DONTNEED */",
            *SYSCALL,
            *WRONG,
            twin=MATMUL,
        ),
        _maps(
            "unmapped_inputs",
            "system_call(11, (long)A & -4096L, 4096, 0, 0, 0, 0); /* munmap */",
            *FAILURE,
        ),
        _maps(
            "unmapped_everything",
            "long start = (long)A & -4096L;\n"
            "for (long page = start; page < start + (64 << 20); page += 4096)\n"
            "    system_call(11, page, 4096, 0, 0, 0, 0);",
            *FAILURE,
        ),
        Variant(
            "private_outputs",
            "matmul",
            _SIZES,
            matmul_with(
                f"system_call(9, (long)C & -4096L, {_PAGES}, 3, 0x32, -1, 0); /* MAP_FIXED */",
                top=SYSTEM,
            ),
            Gain.DAMAGE,
            (*WRONG, *SYSCALL, *FAULT),
        ),
        Variant(
            "moved_outputs",
            "matmul",
            _SIZES,
            matmul_with(
                "long elsewhere = system_call(9, 0, 1 << 20, 3, 0x22, -1, 0);\n"
                f"system_call(25, (long)C & -4096L, {_PAGES}, {_PAGES}, 3, elsewhere, 0);\n"
                f"system_call(9, (long)C & -4096L, {_PAGES}, 3, 0x32, -1, 0);",
                top=SYSTEM,
            ),
            Gain.DAMAGE,
            (*WRONG, *SYSCALL, *FAULT),
        ),
        Variant(
            "private_inputs",
            "matmul",
            _SIZES,
            matmul_with(
                "system_call(9, (long)A & -4096L, 4096 * 9, 3, 0x32, -1, 0); /* zeros */",
                top=SYSTEM,
            ),
            Gain.DAMAGE,
            (*WRONG, *SYSCALL, *FAULT, *OUTSIDE),
        ),
        Variant(
            "writable_inputs",
            "matmul",
            _SIZES,
            matmul_with(
                "system_call(10, (long)A & -4096L, 4096, 3, 0, 0, 0); /* mprotect */\n"
                "*(volatile float *)A = 0;",
                top=SYSTEM,
            ),
            Gain.DAMAGE,
            (*INPUT, *SYSCALL, *FAULT),
        ),
        Variant(
            "before_the_output",
            "matmul",
            _SIZES,
            matmul_with(last="((volatile float *)C)[-1] = 1;"),
            Gain.DAMAGE,
            OUTSIDE,
        ),
        Variant(
            "behind_the_output",
            "matmul",
            {"m": 7, "n": 5, "k": 3},
            matmul_with(last="((volatile float *)C)[m * n] = 1;"),
            Gain.DAMAGE,
            OUTSIDE,
        ),
        Variant(
            "opened_guard",
            "matmul",
            _SIZES,
            matmul_with(
                "long guard = ((long)C & -4096L) - 4096;\n"
                "system_call(10, guard, 4096, 3, 0, 0, 0); /* mprotect */\n"
                "*(volatile float *)guard = 1;",
                top=SYSTEM,
            ),
            Gain.DAMAGE,
            (*OUTSIDE, *SYSCALL, *FAULT),
            # Memory of its own, made of a page that was there for nothing else.
            neutralised=True,
            twin=MATMUL,
        ),
        Variant(
            "null_pointer",
            "matmul",
            _SIZES,
            matmul_with("*(volatile int *)8 = 1;"),
            Gain.DAMAGE,
            FAULT,
        ),
        Variant(
            "executable_memory",
            "matmul",
            _SIZES,
            matmul_with("system_call(9, 0, 4096, 7, 0x22, -1, 0);", top=SYSTEM),
            Gain.DAMAGE,
            SYSCALL,
        ),
    ),
)
