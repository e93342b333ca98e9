"""Completions of earlier runs, played again: no network, no call, the same campaign.

Strict: an answer is found by the hash of the whole request, and one that was never asked for is an
error that says what differs from the nearest that was.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from kernelwright.agents.asking import answer_of, storable
from kernelwright.agents.chat import BackendError, ChatModel, ChatRequest, Completion, Hurried
from kernelwright.agents.recordings import (
    RecordingError,
    Recordings,
    exchange,
    is_run,
    write_recording,
)
from kernelwright.env.options import ChoiceOption, FolderOption, OptionError
from kernelwright.search.store import StoreError

_log = logging.getLogger(__name__)


class Replay:
    """Plays the completions of earlier runs and recordings, by request.

    Raises:
        OptionError: if there is nothing to play, or options do not go together.
    """

    def __init__(
        self,
        *,
        from_: Annotated[
            str | tuple[str, ...],
            Field(description="a run's folder or one of recordings, or several; the first counts"),
            FolderOption(),
        ],
        model: Annotated[
            str | None, Field(min_length=1, description="the recorded model, where it is not one")
        ] = None,
        on_miss: Annotated[
            Literal["error", "record"],
            Field(description="what becomes of a request that was never made"),
        ] = "error",
        backend: Annotated[
            Any, Field(description="who is asked then, with on_miss: record"), ChoiceOption()
        ] = None,
    ) -> None:
        folders = (from_,) if isinstance(from_, str) else from_
        self.asked: ChatModel | None = backend if on_miss == "record" else None
        self._into = next((Path(f) for f in folders if not is_run(Path(f))), None)
        self._check(on_miss, backend)
        if self.asked is not None and self._into is not None:
            folders = tuple(f for f in folders if Path(f) != self._into or self._into.exists())
        try:
            self._known = Recordings(folders)
        except (RecordingError, StoreError) as error:
            raise OptionError("from", "recorded completions", str(error)) from None
        self.model = self._model(model)

    def _check(self, on_miss: str, backend: object) -> None:
        if on_miss == "record" and backend is None:
            raise OptionError("on_miss", "a backend to ask beside 'record'", "none")
        if on_miss == "error" and backend is not None:
            raise OptionError("backend", "'on_miss: record' beside it", "'on_miss: error'")
        if on_miss == "record" and self._into is None:
            raise OptionError("from", "a folder to record in beside the runs", "runs alone")

    def _model(self, wanted: str | None) -> str:
        models = self._known.models
        if self.asked is not None:
            return self.asked.model
        if not models:
            raise OptionError("from", "recorded completions", "none")
        if wanted is None and len(models) > 1:
            raise OptionError("model", f"one of the recorded {', '.join(models)}", "none")
        if wanted is not None and wanted not in models:
            raise OptionError("model", f"one of the recorded {', '.join(models)}", repr(wanted))
        return wanted or models[0]

    @property
    def priced(self) -> bool:
        """Recorded completions carry what they cost; for others it is up to who is asked."""
        return self.asked is None or self.asked.priced

    @property
    def missing(self) -> tuple[str, ...]:
        """What whoever has to be asked lacks, where nothing is recorded yet."""
        return () if self.asked is None or len(self._known) else self.asked.missing

    def keep_to(self, left_s: Callable[[], float]) -> None:
        """Have whoever is asked keep to the time."""
        if isinstance(self.asked, Hurried):
            self.asked.keep_to(left_s)

    def complete(self, request: ChatRequest) -> Completion:
        """The recorded answer, or the error that came in its place.

        Raises:
            BackendError: the recorded one; or a permanent one if there is no such request.
        """
        found = self._known.find(request)
        if found is None and self.asked is None:
            what = f"no answer to request {request.key[:12]} is recorded"
            raise BackendError("permanent", f"{what}; {self._known.nearest(request)}")
        answer = self._asked(request) if found is None else answer_of(found)
        if isinstance(answer, BackendError):
            raise answer
        return answer

    def _asked(self, request: ChatRequest) -> Completion | BackendError:
        """Ask, and keep what was answered; errors that may pass are not kept."""
        assert self.asked is not None
        assert self._into is not None
        answer: Completion | BackendError
        try:
            answer = storable(self.asked.complete(request))
        except BackendError as error:
            if error.kind != "content":
                raise
            answer = error
        data = exchange(request, answer)
        try:
            write_recording(self._into, data)
        except OSError as error:
            # The campaign's own record has the answer all the same.
            _log.warning("an answer is not kept in %s: %s", self._into, error)
        self._known.keep(data)
        return answer
