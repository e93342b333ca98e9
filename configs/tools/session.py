"""A campaign that is fed from outside, one candidate at a time.

Everything that judges or records runs on one thread, in the order in which it was asked for; who
asks waits for a future and may look at the record meanwhile. Only the time for which the judge
works counts as the campaign's: whoever writes candidates may think as long as they like.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeVar

import yaml

from kernelwright.configs.build import Built, build
from kernelwright.configs.folder import claim, free, worker_count, write, write_winner
from kernelwright.configs.load import check_document, read_document
from kernelwright.configs.tools.clock import WorkClock
from kernelwright.configs.tuning import keep_or_warn, plan_with_cache
from kernelwright.env.protocols import Violation, explained
from kernelwright.env.types import Candidate, Proposal
from kernelwright.search.campaign import Campaign, Progress, Stop
from kernelwright.search.driver import Driver, Journal
from kernelwright.search.drivers.external import External
from kernelwright.search.executors import make_executor
from kernelwright.search.store import DATABASE, SqliteStore
from kernelwright.search.summary import summarise
from kernelwright.search.trial import Trial

T = TypeVar("T")
DRIVER = {"name": "external"}
# What a campaign that stops to be fed is still waiting for.
State = Literal["starting", "open", "confirming", "finished", "unsettled", "failed"]
_LOG = logging.getLogger(__name__)


class Refused(Exception):  # noqa: N818 - an answer, not a failure
    """What was asked cannot be done now; the message says why and what can."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a candidate: its trial, or why there is none; and why the search ended, if it
    did.
    """

    trial: Trial | None
    is_new: bool
    stop: Stop | None = None


class Session:
    """An open campaign.

    Args:
        config: a campaign file or a shipped name; its driver gives way to one that is fed.
        out: the run's folder; ``runs/NAME-external`` unless given.
        overrides: ``a.b=value`` each, over the file.
        workers: threads; never changes a result.

    Raises:
        ConfigError: if the campaign is refused, or the folder holds another one.
        StoreError: if another process is running it.
    """

    def __init__(
        self,
        config: str | Path,
        out: str | Path | None = None,
        *,
        overrides: Sequence[str] = (),
        workers: int | None = None,
    ) -> None:
        self.built, folder, count = _built(config, overrides, workers)
        self.folder = Path("runs") / folder if out is None else Path(out)
        self.name = str(self.built.resolved["name"])
        self.state: State = "starting"
        self.stop: Stop | None = None
        self.failure: str | None = None
        self.progress: Progress | None = None
        self._is_closing = False
        self._watch = WorkClock()
        self._driver: External | None = None
        self._campaign: Campaign | None = None
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="campaign")
        try:
            self._pool.submit(self._open, count).result()
        except BaseException:
            self._pool.shutdown()
            raise
        self._pool.submit(self._guarded, self._go_on)

    # What is asked from any thread

    @property
    def path(self) -> Path:
        """The file of the record."""
        return self.folder / DATABASE

    def check(self, candidate: Candidate) -> tuple[Candidate, tuple[Violation, ...]]:
        """A candidate in its canonical form, and the rules of the space that it breaks."""
        violations = explained(self.built.space, candidate)
        return candidate if violations else self.built.space.canonical(candidate), violations

    def known(self, candidate: Candidate) -> Trial | None:
        """The trial of a candidate that was judged before."""
        return None if self._driver is None else self._driver.told.get(candidate.key)

    def submit(self, proposal: Proposal) -> Future[Outcome]:
        """Have a candidate of the space judged, unless it was."""
        return self._pool.submit(self._guarded, lambda: self._submit(proposal))

    def refuse(self, candidate: str, reasons: Sequence[str]) -> Future[None]:
        """Record that something was handed in that is no candidate of the space."""
        return self._pool.submit(self._guarded, lambda: self._refuse(candidate, reasons))

    def finish(self) -> Future[Stop]:
        """End the search, if it has not ended, and confirm its best candidates."""
        return self._pool.submit(self._guarded, self._finish)

    def close(self) -> None:
        """Let what is being judged end, and close the record. The campaign can be gone on with, and
        what is not confirmed yet is confirmed then.
        """
        if not self._is_closing:
            self._is_closing = True
            self._pool.submit(self._close)
            self._pool.shutdown(wait=True)

    # What runs on the campaign's thread

    def _open(self, count: int) -> None:
        self._store = store = SqliteStore(free(self.folder) / DATABASE)
        try:
            resolved = {k: v for k, v in self.built.resolved.items() if k != "workers"}
            extension = claim(store, self.folder, resolved, self.built)
            write(self.folder / "config.yaml", yaml.safe_dump(self.built.resolved, sort_keys=False))
            events = store.events()
            if extension is None and events and events[-1].kind == "finished":
                self.state = "finished"
                stops = [e.data for e in events if e.kind == "stopped"]
                self.stop = Stop(stops[-1]["rule"], stops[-1]["reason"])
                return
            plan, executor = plan_with_cache(self.built, events), make_executor(count)
        except BaseException:
            store.close()
            raise

        def make(journal: Journal) -> Driver:
            driver = plan.make_driver(journal)
            assert isinstance(driver, External)
            self._driver = driver
            return driver

        self._campaign = Campaign(
            replace(plan, make_driver=make),
            store,
            executor=executor,
            observe=self._observe,
            extension=extension,
            clock=self._watch,
        )

    def _observe(self, progress: Progress) -> None:
        self.progress = progress

    def _go_on(self) -> None:
        """Judge the baseline, and replay what an earlier sitting recorded."""
        if self._campaign is None:
            return
        with self._watch.running():
            self._campaign.start()
            assert self._driver is not None
            stop = self._campaign.due()
            while stop is None and self._driver.is_behind:
                stop = self._campaign.step() or self._campaign.due()
        self.state = "open"
        self._end(stop)

    def _submit(self, proposal: Proposal) -> Outcome:
        campaign, driver = self._opened()
        past = driver.told.get(proposal.candidate.key)
        if past is not None:
            driver.refuse("duplicate", key=past.candidate.key, trial=past.number)
            return Outcome(past, is_new=False)
        driver.hand_in(proposal)
        try:
            with self._watch.running():
                stop = campaign.step() or campaign.due()
        finally:
            driver.withdraw()
        self._end(stop)
        return Outcome(driver.told.get(proposal.candidate.key), is_new=True, stop=stop)

    def _refuse(self, candidate: str, reasons: Sequence[str]) -> None:
        _, driver = self._opened()
        told = [reason[:1000] for reason in reasons[:4]]
        driver.refuse("invalid", key="", candidate=candidate[:1000], reasons=told)

    def _finish(self) -> Stop:
        if self.state == "open":
            campaign, driver = self._opened()
            driver.close("whoever hands in candidates ended the search")
            with self._watch.running():
                stop = campaign.step()
            assert stop is not None
            self._end(stop)
        if self.state == "confirming":
            self._confirm()
        assert self.stop is not None
        return self.stop

    def _end(self, stop: Stop | None) -> None:
        """The search has ended, if it has: what is left is to confirm."""
        if stop is not None:
            self.stop, self.state = stop, "confirming"
            if not self._is_closing:
                self._pool.submit(self._guarded, self._confirm)

    def _confirm(self) -> None:
        """Confirm the finalists, once, and for somebody who is still there."""
        if self.state != "confirming" or self._is_closing:
            return
        assert self._campaign is not None
        assert self.stop is not None
        with self._watch.running():
            self._campaign.finish(self.stop)
            self._campaign.close()
        keep_or_warn(self.built, self._store, run=f"{self.name} in {self.folder.name}")
        summary = summarise(self._store)
        write_winner(self.folder, self.built, self._store, summary["best"])
        self.state = "finished" if summary["finished"] else "unsettled"

    def _opened(self) -> tuple[Campaign, External]:
        """The campaign, if it takes candidates.

        Raises:
            Refused: if it does not.
        """
        if self.state != "open" or self._campaign is None or self._driver is None:
            why = self.failure or (self.stop.reason if self.stop else "it has not begun")
            raise Refused(f"no candidates are taken: the search is {self.state} ({why})")
        return self._campaign, self._driver

    def _guarded(self, work: Callable[[], T]) -> T:
        """Do this; what fails in the campaign itself ends the session, not the server."""
        if self.failure is not None:
            raise Refused(f"the campaign failed: {self.failure}")
        try:
            return work()
        except Refused:
            raise
        except Exception as error:
            # The judge's, the record's or our own: whatever it is, nothing more can be trusted to
            # it now, and what is recorded is gone on with next time.
            _LOG.exception("the campaign failed")
            self.failure, self.state = f"{type(error).__name__}: {error}", "failed"
            raise Refused(f"the campaign failed: {self.failure}") from error

    def _close(self) -> None:
        if self._campaign is not None and self.state in ("open", "confirming"):
            self._campaign.close()
        self._store.close()


def _built(
    config: str | Path, overrides: Sequence[str], workers: int | None
) -> tuple[Built, str, int]:
    """The campaign with a driver that is fed in its own's place, the name of its folder, and its
    number of workers.
    """
    document, place = read_document(config, overrides)
    is_fed = document.get("driver", "name") == DRIVER["name"]
    if "tasks" not in document.data and not is_fed:
        document.data["driver"] = dict(DRIVER)
        document.data.pop("agents", None)
    campaign = check_document(document, place)
    budget = campaign.file.budget
    if budget.trials is None and budget.seconds is None:
        expected = "trials or seconds: calls and tokens of a model are those of whoever writes"
        raise document.error(("budget",), expected, "neither")
    built = build(campaign)
    if built.missing:
        expected = " and ".join(built.missing)
        raise campaign.document.error(("target",), expected, "none on this machine")
    name = campaign.file.name if is_fed else f"{campaign.file.name}-{DRIVER['name']}"
    return built, name, worker_count(campaign.file, workers)
