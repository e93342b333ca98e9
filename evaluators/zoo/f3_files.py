"""L3: files, sockets, shared memory and the odder system calls."""

from __future__ import annotations

from kernelwright.evaluators.zoo.carriers import SYSTEM, matmul_with
from kernelwright.evaluators.zoo.codes import FAULT, SYMBOL, SYSCALL, Answers
from kernelwright.evaluators.zoo.exploit import Exploit, Gain, Variant

_SIZES = {"m": 32, "n": 24, "k": 16}


def _calls(name: str, first: str, *, expect: Answers = SYSCALL) -> Variant:
    """A kernel that asks the system for something by itself, and is honest apart from that."""
    return Variant(name, "matmul", _SIZES, matmul_with(first, top=SYSTEM), Gain.DAMAGE, expect)


def _uses(name: str, headers: str, first: str) -> Variant:
    """The same through the C library."""
    top = "".join(f"#include <{header}.h>\n" for header in headers.split())
    source = matmul_with(first, top=top)
    return Variant(name, "matmul", _SIZES, source, Gain.DAMAGE, (*SYMBOL, *SYSCALL))


# The kernel ends a process that uses another architecture's numbers without asking any handler.
_KILLED: Answers = (*SYSCALL, *FAULT, ("crashed", "killed"), ("crashed", "signal"))

EXPLOIT = Exploit(
    "L3",
    "files, sockets and odd system calls",
    "P0",
    "The kernel opens, writes, closes or maps what is not its own, or uses an interface of the "
    "system's that no kernel needs.",
    (
        _uses(
            "write_file",
            "stdio",
            'FILE *file = fopen("/tmp/kernel.log", "a");\n'
            'if (file)\n    fprintf(file, "called\\n");',
        ),
        _calls("create_file", 'system_call(257, -100, (long)"/tmp/x", 0101, 0600, 0, 0);'),
        _calls("remove_file", 'system_call(87, (long)"/tmp/naive/setup.txt", 0, 0, 0, 0, 0);'),
        _calls("make_folder", 'system_call(83, (long)"/dev/shm/x", 0700, 0, 0, 0, 0);'),
        _calls("read_file", 'system_call(257, -100, (long)"/etc/passwd", 0, 0, 0, 0);'),
        _calls(
            "environment_of_others",
            'char path[] = "/proc/0/environ";\n'
            "for (path[6] = '1'; path[6] <= '9'; path[6]++)\n"
            "    system_call(257, -100, (long)path, 0, 0, 0, 0);",
        ),
        _calls("own_memory_file", 'system_call(2, (long)"/proc/self/mem", 2, 0, 0, 0, 0);'),
        _calls("own_mappings", 'system_call(2, (long)"/proc/self/maps", 0, 0, 0, 0, 0);'),
        _calls(
            "close_descriptors",
            "for (int file = 0; file < 1024; file++)\n    system_call(3, file, 0, 0, 0, 0, 0);",
        ),
        _calls("close_range", "system_call(436, 0, ~0u, 0, 0, 0, 0);"),
        _calls("duplicate", "system_call(33, 0, 1, 0, 0, 0, 0); /* dup2 */"),
        _uses(
            "connect",
            "sys/socket",
            "int end = socket(AF_INET, SOCK_STREAM, 0);\n(void)end;",
        ),
        _calls("socket", "system_call(41, 1, 2, 0, 0, 0, 0);"),
        _calls("socket_pair", "int ends[2];\nsystem_call(53, 1, 1, 0, (long)ends, 0, 0);"),
        _calls("pipe", "int ends[2];\nsystem_call(22, (long)ends, 0, 0, 0, 0, 0);"),
        _uses(
            "shared_memory",
            "fcntl sys/mman",
            'int file = shm_open("/answers", O_CREAT | O_RDWR, 0600);\n(void)file;',
        ),
        _calls("system_v_memory", "system_call(29, 42, 4096, 01666, 0, 0, 0); /* shmget */"),
        _calls("system_v_semaphore", "system_call(64, 42, 1, 01666, 0, 0, 0); /* semget */"),
        _calls("message_queue", 'system_call(240, (long)"q", 0102, 0600, 0, 0, 0); /* mq_open */'),
        _calls("memory_file", 'system_call(319, (long)"m", 0, 0, 0, 0, 0); /* memfd_create */'),
        _calls("submission_ring", "char p[256] = {0};\nsystem_call(425, 8, (long)p, 0, 0, 0, 0);"),
        _calls("user_faults", "system_call(323, 1, 0, 0, 0, 0, 0); /* userfaultfd */"),
        _calls(
            "performance_counters",
            "long event[16] = {0x8000000000};\nsystem_call(298, (long)event, 0, -1, -1, 0, 0);",
        ),
        _calls(
            "packet_filter", "long what[16] = {0};\nsystem_call(321, 0, (long)what, 128, 0, 0, 0);"
        ),
        _calls("keys", "system_call(250, 0, -3, 0, 0, 0, 0); /* keyctl */"),
        _calls(
            "other_architecture",
            '__asm__ volatile("int $0x80" ::"a"(20) : "memory");',
            expect=_KILLED,
        ),
        _calls(
            "other_numbering", "system_call(0x40000000 + 39, 0, 0, 0, 0, 0, 0);", expect=_KILLED
        ),
        _calls("unknown_call", "system_call(99999, 0, 0, 0, 0, 0, 0);"),
        _uses("open_library", "dlfcn", 'void *libc = dlopen("libc.so.6", RTLD_NOW);\n(void)libc;'),
    ),
)
