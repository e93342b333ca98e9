"""Options of the suite."""

from __future__ import annotations

import signal

import pytest

# A shell that starts the suite in the background has it ignore interruptions, and so would whatever
# the tests start in order to interrupt it.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser):
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write the golden files instead of comparing them",
    )


@pytest.fixture(autouse=True)
def calm_host(request, monkeypatch):
    """A host on which identical kernels are alike and nothing disturbs: what the suite's own load
    does to timings decides no test. ``@pytest.mark.real_host`` asks for the real one.
    """
    if request.node.get_closest_marker("real_host"):
        return
    from kernelwright.evaluators.cpu.host import Watch
    from kernelwright.evaluators.cpu.likeness import Likeness
    from kernelwright.evaluators.cpu.target import Cpu

    monkeypatch.setattr(Cpu, "_likeness", lambda self, state: Likeness((0.0, 0.0), 0.0))
    monkeypatch.setattr(Watch, "is_disturbed", lambda self, conditions, pair_ns: False)
