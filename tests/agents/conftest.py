"""Spaces in each language, small enough that proposals cost milliseconds, and a campaign in
miniature around a driver.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from contracts import judged
from serving import Server
from virtual import VirtualClock

from kernelwright.agents import AGENT_DRIVERS
from kernelwright.agents.backends.gate import Gate
from kernelwright.agents.backends.mock import Mock
from kernelwright.agents.backends.openai import OpenAI
from kernelwright.configs.resolve import resolve
from kernelwright.env.problems.gemm_gpu import gemm_gpu
from kernelwright.env.problems.matmul import matmul
from kernelwright.env.problems.softmax import softmax
from kernelwright.env.spaces.knobs import KnobSpace
from kernelwright.env.spaces.schedule import ScheduleSpace
from kernelwright.env.spaces.source import SourceSpace
from kernelwright.evaluators.gpu_model import GpuModel
from kernelwright.search.store import StoreJournal

SOFTMAX_REGIONS = """#include <math.h>
#include <stdint.h>

void softmax(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        float top = x[i * cols];
        for (int64_t j = 1; j < cols; j++)
            if (x[i * cols + j] > top)
                top = x[i * cols + j];
        float sum = 0;
        // region exponentials
        for (int64_t j = 0; j < cols; j++) {
            y[i * cols + j] = expf(x[i * cols + j] - top);
            sum += y[i * cols + j];
        }
        // endregion exponentials
        // region normalise
        for (int64_t j = 0; j < cols; j++)
            y[i * cols + j] /= sum;
        // endregion normalise
    }
}
"""


def made_up(candidate):
    """An objective between -1 and 1 that is a function of the candidate; one in eight fails."""
    number = int(candidate.key[:8], 16)
    return None if number % 8 == 0 else number / 2**31 - 1


class Recording(StoreJournal):
    """A journal whose events can be listed."""

    def __init__(self):
        self.events = []
        super().__init__((), self.events.append)


@dataclass
class World:
    """A space with its problem, and how a campaign in it goes."""

    space: object
    problem: object

    def driver(
        self,
        journal,
        *,
        agent="llm",
        seed=0,
        batch=4,
        backend=None,
        skill=0.7,
        faults=0.0,
        **options,
    ):
        return resolve(AGENT_DRIVERS, agent)(
            self.space,
            seed=seed,
            batch=batch,
            problem=self.problem,
            backend=backend or Mock(seed=seed, skill=skill, faults=faults),
            prompt=options.pop("prompt", "refine"),
            journal=journal,
            **options,
        )

    def play(self, driver, *, asks, batch=4, objective=made_up, each=None):
        """Ask and tell some times, or until the driver stops; the proposals of every ask."""
        asked, trials = [], []
        for _ in range(asks):
            proposals = driver.ask(batch)
            asked.append(tuple(proposals))
            if not proposals:
                break
            first = len(trials)
            told = [
                judged(first + i, p.candidate, objective(p.candidate))
                for i, p in enumerate(proposals)
            ]
            trials += told
            driver.tell(told)
            if each is not None and each(trials):
                break
        return asked, trials


def _worlds():
    gemm = gemm_gpu()
    target = GpuModel(gemm, seed=0)
    small = matmul(m=64, n=64, k=64)
    rows = softmax(rows=16, cols=64)
    text = rows.plain_c
    regions = ("exponentials", "normalise")
    return {
        "knobs": lambda: World(
            KnobSpace(gemm.knobs, target.constraints, default=gemm.unscheduled), gemm
        ),
        "schedule": lambda: World(ScheduleSpace(small.definition(small.workloads[0])), small),
        "source": lambda: World(SourceSpace(text, entry="softmax"), rows),
        "regions": lambda: World(
            SourceSpace(SOFTMAX_REGIONS, entry="softmax", regions=regions),
            replace(rows, plain_c=SOFTMAX_REGIONS),
        ),
    }


@pytest.fixture(scope="session")
def worlds():
    return {name: make() for name, make in _worlds().items()}


@pytest.fixture
def journal():
    return Recording()


@pytest.fixture(scope="session")
def recording():
    return Recording


@pytest.fixture
def server(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    found = Server()
    yield found
    found.http.shutdown()
    found.http.server_close()


@pytest.fixture
def backend(server):
    def make(*script, **options):
        server.script = list(script)
        found = OpenAI(model="m", base_url=server.url, **{"retries": 2, **options})
        found.pass_through(Gate(clock=VirtualClock()))
        return found

    return make
