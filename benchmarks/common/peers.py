"""One search of a recorded space by another tuner: Kernel Tuner's strategies and Optuna's TPE.

Their packages are imported where they are used, so that the figures can be read without them.
"""

from __future__ import annotations

import math
import random
import signal
import time
from collections.abc import Mapping

from recordings import BUDGET, Config, Space, minima

ASKS = 4 * BUDGET  # where TPE is stopped if it has not proposed enough new members
CPU_LIMIT_S = 15.0  # hybrid_vndx repeats itself for a minute where nearly all is known
AT = 64  # evaluations after which best over optimum is compared


class OverrunError(Exception):
    """A search used up its CPU time without using up its budget."""


def records(space: Space) -> dict[str, dict]:
    """The space as Kernel Tuner's simulation runner looks it up."""
    from kernel_tuner.util import RuntimeFailedConfig

    found = {}
    for config, time_us in space.times.items():
        failed = math.isinf(time_us)
        outcome = {"__error__": RuntimeFailedConfig()} if failed else {"time": time_us}
        named = dict(zip(space.knobs, config, strict=True))
        found[",".join(map(str, config))] = named | outcome
    return found


def kernel_tuner(space: Space, cache: Mapping[str, dict], strategy: str, seed: int) -> dict:
    """One search by a strategy of Kernel Tuner, from a search-space object made for it alone.
    ``cache`` is what ``records`` made of the space.
    """
    import numpy as np
    from kernel_tuner.interface import Options, strategy_map
    from kernel_tuner.searchspace import Searchspace
    from kernel_tuner.util import TuningBudget

    tune_params = {knob: list(values) for knob, values in space.knobs.items()}
    runner = recorder(space)
    searchspace = Searchspace(tune_params, list(space.restrictions), runner.dev.max_threads)
    if searchspace.size != len(space.times):
        raise ValueError(f"{space.name}: {searchspace.size} members, expected {len(space.times)}")
    options = Options(
        tune_params=tune_params,
        restrictions=searchspace._modified_restrictions,
        objective=["time"],
        objective_higher_is_better=[False],
        metrics=None,
        verbose=False,
        cache=cache,
        cachefile=None,
        strategy_options=Options(max_fevals=BUDGET),
        max_fevals=BUDGET,
        budget=TuningBudget(None, BUDGET),
    )
    tune = strategy_map[strategy].tune  # imports the strategy, before the clock runs
    random.seed(seed)
    np.random.seed(seed)
    overrun = False
    signal.signal(signal.SIGPROF, stop)
    start = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, CPU_LIMIT_S)
    try:
        tune(searchspace, runner, options)
    except OverrunError:
        overrun = True
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    cpu_s = time.process_time() - start
    ratios = [space.times[config] / space.best for config in runner.charged]
    found = {"minima": minima(ratios), "used": len(ratios), "asks": runner.asks, "cpu_s": cpu_s}
    return found | ({"overrun": True} if overrun else {})


def stop(number: int, frame: object) -> None:
    raise OverrunError


def recorder(space: Space):
    """Kernel Tuner's simulation runner, which also notes the members it evaluates, in order."""
    from kernel_tuner.interface import Options
    from kernel_tuner.runners.simulation import SimulationRunner

    class Recorder(SimulationRunner):
        def run(self, parameter_space, tuning_options):
            results = super().run(parameter_space, tuning_options)
            for result in results:
                if result is None:  # the budget was spent
                    continue
                self.asks += 1
                config = tuple(result[knob] for knob in space.knobs)
                if config in space.times:
                    self.charged.setdefault(config)
            return results

    runner = Recorder(None, Options(kernel_name=space.name), Options(quiet=True), 1, None)
    runner.asks, runner.charged = 0, {}
    return runner


def tpe(space: Space, seed: int) -> dict:
    """One search by Optuna's TPE, and where its minima fall when every ask counts."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    knobs = {
        knob: optuna.distributions.CategoricalDistribution(values)
        for knob, values in space.knobs.items()
    }
    asked: list[float] = []
    charged: dict[Config, float] = {}
    start = time.process_time()
    while len(charged) < BUDGET and len(asked) < ASKS:
        trial = study.ask(knobs)
        config = tuple(trial.params[knob] for knob in knobs)
        found = space.times.get(config, math.inf)
        study.tell(trial, found)
        asked.append(found / space.best)
        if config in space.times:
            charged[config] = found / space.best
    cpu_s = time.process_time() - start
    return {
        "minima": minima(charged.values()),
        "minima_asked": minima(asked),
        "used": len(charged),
        "asks": len(asked),
        "cpu_s": cpu_s,
    }
