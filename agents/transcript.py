"""A run's questions, written again. They are not stored: they are a function of the campaign and
its record, so the driver is asked once more, and answered from the record.
"""

from __future__ import annotations

from collections.abc import Sequence

from kernelwright.agents.asking import recorded
from kernelwright.agents.chat import BackendError, ChatRequest, Completion
from kernelwright.search.trial import MODEL_CALL, Event


class OverError(BackendError):
    """All questions that were wanted have been asked."""

    def __init__(self) -> None:
        super().__init__("permanent", "the record ends here")


class Rereading:
    """A model that gives the recorded answers, in their order, and keeps the questions.

    Args:
        calls: the events of a run's calls, in the order in which they were made.
        most: after how many it answers no more.
    """

    priced = True
    missing: tuple[str, ...] = ()

    def __init__(self, calls: Sequence[Event], most: int) -> None:
        self._calls, self._most = list(calls[:most]), most
        self.model = str(calls[0].data["model"]) if calls else ""
        self._at = {(call.ask, call.slot): call for call in self._calls}
        self.requests: list[ChatRequest] = []

    def complete(self, request: ChatRequest) -> Completion:
        """The recorded answer to the next question.

        Raises:
            OverError: after the last that was wanted.
            ReplayMismatch: if the record holds the answer to another question.
            BackendError: where the record has one.
        """
        place = len(self.requests)
        if place >= len(self._calls):
            raise OverError
        self.requests.append(request)
        if place + 1 < len(self._calls) and self._calls[place + 1].data["model"] != self.model:
            self.model = str(self._calls[place + 1].data["model"])
        answer = recorded(self._calls[place], request, lambda *at: self._at[at].data)
        if place + 1 == self._most:
            raise OverError
        if isinstance(answer, BackendError):
            raise answer
        return answer


def calls_of(events: Sequence[Event]) -> list[Event]:
    """The calls of a run, in the order in which they were made."""
    return [event for event in events if event.kind == MODEL_CALL]
