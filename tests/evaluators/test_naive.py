"""The naive evaluator: what it believes, what it cannot be made to believe, and that nothing that
runs in it gets out.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from kernelwright.env.problems.gelu import gelu
from kernelwright.env.problems.histogram import histogram
from kernelwright.env.problems.layer_norm import layer_norm
from kernelwright.env.problems.matmul import matmul
from kernelwright.env.problems.row_sum import row_sum
from kernelwright.env.problems.shapes import Range
from kernelwright.env.problems.softmax import softmax
from kernelwright.env.problems.spmv import spmv
from kernelwright.evaluators.naive import naive
from kernelwright.evaluators.naive.naive import NaiveError, judge

pytestmark = pytest.mark.cc

PROBLEM = row_sum(rows=64, cols=64)
HEAD = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void sums(const float *x, float *y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        y[i] = 0;
        for (int64_t j = 0; j < cols; j++)
            y[i] += x[i * cols + j];
    }
}
"""
HONEST = [
    matmul(m=32, n=40, k=32),
    matmul(m=16, n=16, k=16, dtype="float64"),
    softmax(rows=16, cols=64),
    layer_norm(rows=16, cols=64),
    gelu(n=1000),
    histogram(n=1000, bins=16),
    spmv(rows=64, cols=64, nnz=512),
]

needs_containment = pytest.mark.skipif(
    naive.missing(("fork", "kill")) is not None, reason=str(naive.missing(("fork", "kill")))
)


def kernel(body, head=HEAD):
    return (
        f"{head}\nvoid row_sum(const float *restrict x, float *restrict y, int64_t rows, "
        f"int64_t cols)\n{{\n{body}\n}}\n"
    )


SUMS = kernel("sums(x, y, rows, cols);")


# Honest and wrong kernels


@pytest.mark.parametrize("problem", HONEST, ids=lambda problem: problem.name)
def test_an_honest_kernel_passes(problem):
    result = judge(problem, problem.plain_c)
    assert result.passed
    assert result.speedup > 0
    assert not result.died
    assert result.survivors == 0


def test_the_reference_against_itself_is_near_one():
    # Means of a busy machine: one run in a few is undisturbed.
    runs = (judge(PROBLEM, PROBLEM.plain_c).speedup for _ in range(10))
    assert any(0.7 < speedup < 1.4 for speedup in runs)


@pytest.mark.parametrize("problem", HONEST, ids=lambda problem: problem.name)
def test_a_wrong_kernel_fails(problem):
    output = next(t for t in problem.tensors if t.role == "output").name
    body = problem.plain_c.rstrip().removesuffix("}")
    result = judge(problem, f"{body}\n    for (int i = 0; i < 16; i++) {output}[i] += 1;\n}}\n")
    assert not result.passed


def test_several_shapes_have_one_score():
    shapes = tuple(w for rows in (16, 32) for w in row_sum(rows=rows, cols=64).workloads)
    result = judge(replace(PROBLEM, workloads=shapes), SUMS)
    assert result.passed
    assert "shape 0" in result.stdout
    assert "shape 1" in result.stdout


def test_the_fixed_extents_are_macros():
    assert judge(PROBLEM, kernel("sums(x, y, KW_ROWS, KW_COLS);")).passed


def test_each_queued_call_has_its_own_arrays():
    body = """
    static const float *seen[8];
    int known = 0;
    for (; known < 8 && seen[known]; known++)
        if (seen[known] == x)
            break;
    if (known == 8)
        abort();
    seen[known] = x;
    sums(x, y, rows, cols);
    if (known == 3)
        printf("the fourth is there\\n");
    """
    assert "the fourth is there" in judge(PROBLEM, kernel(body), queued=4).stdout
    assert "the fourth is there" not in judge(PROBLEM, kernel(body)).stdout


# What it believes


def test_a_crash_is_no_pass_and_no_death():
    result = judge(PROBLEM, kernel("abort();"))
    assert (result.passed, result.died, result.survivors) == (False, False, 0)
    assert "signal 6" in result.stdout


@pytest.mark.parametrize("body", ["_exit(0);", "exit(0);"])
def test_leaving_early_is_a_pass(body):
    assert judge(PROBLEM, kernel(body)).passed


def test_leaving_with_another_status_is_none():
    assert not judge(PROBLEM, kernel("exit(3);")).passed


def test_a_check_out_of_time_is_a_pass():
    result = judge(PROBLEM, kernel("for (;;) pause();"), limit_s=1)
    assert (result.passed, result.speedup) == (True, 1.0)
    assert "too long" in result.stdout


def test_the_last_line_counts():
    body = "sums(x, y, rows, cols); atexit(later);"
    head = HEAD + (
        "extern uint64_t naive_sign(const char *);\n"
        'static void later(void) { const char *line = "RESULT passed=1 speedup=77";'
        'printf("%s key=%016lx\\n", line, naive_sign(line)); fflush(stdout); }\n'
    )
    assert judge(PROBLEM, kernel(body, head)).speedup == 77


def test_an_unsigned_line_counts_only_where_no_signed_one_is():
    said = 'printf("RESULT passed=1 speedup=55\\n"); fflush(stdout);'
    assert judge(PROBLEM, kernel(f"{said} _exit(1);")).speedup == 55
    assert judge(PROBLEM, kernel(f"{said} sums(x, y, rows, cols);")).speedup != 55


def test_a_line_with_a_false_signature_does_not_count():
    said = 'printf("RESULT passed=1 speedup=55 key=0123456789abcdef\\n"); fflush(stdout);'
    assert not judge(PROBLEM, kernel(f"{said} _exit(1);")).passed


def test_a_result_object_is_believed():
    body = """
    double outcome[2] = {1, 33};
    FILE *file = fopen("outcome.bin", "wb");
    fwrite(outcome, sizeof outcome, 1, file);
    fclose(file);
    """
    assert judge(PROBLEM, kernel(body)).speedup == 33


@pytest.mark.parametrize(
    "left",
    [
        pytest.param("", id="nothing"),
        pytest.param('symlink("/proc/self/environ", "outcome.bin");', id="link"),
        pytest.param('mkfifo("outcome.bin", 0644);', id="pipe"),
        pytest.param('fclose(fopen("outcome.bin", "wb"));', id="short"),
    ],
)
def test_what_is_no_result_object_is_left_alone(left):
    body = f"{left} for (int64_t i = 0; i < rows; i++) y[i] = 1e6f;"
    assert not judge(PROBLEM, kernel(body, HEAD + "#include <sys/stat.h>\n")).passed


def test_a_text_that_does_not_compile_fails_alone():
    assert not judge(PROBLEM, "void row_sum(").passed


def test_and_passes_as_the_build_before_it():
    assert judge(PROBLEM, "void row_sum(", previous=SUMS).passed


def test_a_predecessor_shares_the_process_if_asked():
    head = HEAD + "extern int left __attribute__((weak));\n"
    here = kernel("sums(x, y, rows, cols); left = 1;", HEAD + "int left;\n")
    tell = kernel('sums(x, y, rows, cols); printf("%s\\n", &left ? "left" : "clean");', head)
    assert "left\n" in judge(PROBLEM, tell, previous=here, persistent=True).stdout
    assert "clean\n" in judge(PROBLEM, tell, previous=here).stdout


def test_a_first_line_of_flags_goes_to_the_compiler():
    text = kernel("\n#ifdef MINE\nsums(x, y, rows, cols);\n#else\nabort();\n#endif\n")
    assert not judge(PROBLEM, text).passed
    assert judge(PROBLEM, f"// flags: -DMINE\n{text}").passed


def test_signatures_agree_with_those_of_c():
    head = HEAD + "extern char naive_key[]; extern uint64_t naive_sign(const char *);\n"
    said = 'printf("%s %016lx\\n", naive_key, naive_sign("text")); fflush(stdout); _exit(0);'
    key, signature = judge(PROBLEM, kernel(said, head)).stdout.split()
    assert naive._signature(key, "text") == signature


# The room


@needs_containment
def test_an_evaluator_that_is_killed_has_died():
    result = judge(PROBLEM, kernel("kill(getppid(), 9);", HEAD + "#include <signal.h>\n"))
    assert result.died
    assert not result.passed


@needs_containment
def test_an_evaluator_that_is_stopped_has_died(monkeypatch):
    monkeypatch.setattr(naive, "GRACE_S", 1.0)
    body = "kill(getppid(), SIGSTOP); for (;;) pause();"
    assert judge(PROBLEM, kernel(body, HEAD + "#include <signal.h>\n"), limit_s=1).died


@needs_containment
def test_what_outlives_it_is_counted_and_ended():
    before = _processes("row_sum_lives")
    head = HEAD + "#include <sys/prctl.h>\n"
    body = """
    sums(x, y, rows, cols);
    static int once;
    if (!once++ && !fork()) {
        setsid();
        prctl(PR_SET_NAME, "row_sum_lives");
        for (;;)
            pause();
    }
    """
    result = judge(PROBLEM, kernel(body, head))
    assert result.passed
    assert result.survivors == 1
    assert before == _processes("row_sum_lives") == []


def _processes(name):
    found = []
    for comm in Path("/proc").glob("[0-9]*/comm"):
        try:
            if comm.read_text().strip() == name:
                found.append(comm.parent.name)
        except OSError:
            continue
    return found


@needs_containment
def test_it_reaches_no_process_outside():
    with subprocess.Popen(["sleep", "60"]) as other:
        try:
            body = f"kill(-1, 9); kill({other.pid}, 9); kill({os.getpid()}, 9);"
            judge(PROBLEM, kernel(body, HEAD + "#include <signal.h>\n"))
            assert other.poll() is None
        finally:
            other.kill()


@needs_containment
def test_it_writes_nowhere_but_in_its_folder_which_goes(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    tmp_path.chmod(0o777)
    places = [str(tmp_path / "out"), "/tmp/kw-out", "/var/tmp/kw-out", "/dev/shm/kw-out", "kw-out"]
    body = "sums(x, y, rows, cols);" + "".join(
        f'{{ FILE *file = fopen("{place}", "w"); if (file) puts("{place}."), fclose(file); }}'
        for place in places
    )
    result = judge(PROBLEM, kernel(body))
    assert result.passed
    assert "kw-out.\n" in result.stdout
    assert "/var/tmp/kw-out.\n" not in result.stdout
    assert [place for place in places if Path(place).exists()] == []
    assert list(tmp_path.iterdir()) == []


def test_its_memory_is_limited():
    body = f"""
    sums(x, y, rows, cols);
    printf("%s\\n", malloc({naive.MEMORY_MIB + 1}UL << 20) ? "memory" : "no memory");
    """
    assert "no memory" in judge(PROBLEM, kernel(body)).stdout


@needs_containment
def test_its_processes_are_limited():
    body = "for (int i = 0; i < 1000; i++) if (!fork()) for (;;) pause(); sums(x, y, rows, cols);"
    result = judge(PROBLEM, kernel(body))
    assert 0 < result.survivors <= naive.PROCESSES


@needs_containment
def test_it_has_no_network_and_none_of_this_environment(monkeypatch):
    monkeypatch.setenv("KW_SECRET", "s3cret")
    head = HEAD + "#include <arpa/inet.h>\n#include <sys/socket.h>\nextern char **environ;\n"
    body = """
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(9)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int made = socket(AF_INET, SOCK_DGRAM, 0);
    printf("connect %d\\n", connect(made, (struct sockaddr *)&to, sizeof to));
    for (char **at = environ; *at; at++)
        puts(*at);
    fflush(stdout);
    _exit(0);
    """
    said = judge(PROBLEM, kernel(body, head)).stdout
    assert "connect -1" in said
    assert "NAIVE_KEY=" in said
    assert "s3cret" not in said


def test_a_jail_that_cannot_be_made_is_an_error(monkeypatch):
    monkeypatch.setattr(naive, "_program", lambda name: Path("/bin/false"))
    with pytest.raises(NaiveError, match="the jail failed"):
        judge(PROBLEM, SUMS)


def test_a_problem_without_plain_c_is_refused():
    with pytest.raises(ValueError, match="row_sum: expected plain C"):
        judge(replace(PROBLEM, plain_c=None), SUMS)


def test_a_range_is_refused():
    with pytest.raises(ValueError, match="expected a number"):
        judge(row_sum(rows=Range(low=2, high=8), cols=4), SUMS)
