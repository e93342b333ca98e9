"""The backend as a driver is given it.

Drivers ask through a desk, which gives each question its place in the record. A question that a
driver puts to the backend itself gets one here: it is recorded, counted, and read back when the
campaign goes on, like any other.
"""

from __future__ import annotations

from kernelwright.agents.asking import Asker, Sampling
from kernelwright.agents.backends.wrappers import Around
from kernelwright.agents.chat import BackendError, ChatModel, ChatRequest, Completion
from kernelwright.agents.hearing import HeardJournal

# The first place in an ask of a question that came through no desk; beyond all of a desk's.
FIRST_SLOT = 1_000_000


class Direct(Around):
    """A backend whose every call is in the record.

    Args:
        inner: who answers.
        journal: the campaign's record, as the driver is given it.
    """

    def __init__(self, inner: ChatModel, journal: HeardJournal) -> None:
        super().__init__(inner)
        self._journal = journal
        # Questions come whole, with their own sampling.
        self._asker = Asker(inner, journal, Sampling(seed=0, max_tokens=1, temperature=0.0))
        self._ask, self._slot = 0, FIRST_SLOT

    def begin(self) -> None:
        """The driver is asked once more."""
        self._ask, self._slot = self._ask + 1, FIRST_SLOT

    def complete(self, request: ChatRequest) -> Completion:
        """The answer, now or when this was asked before.

        Raises:
            BackendError: if there is none; a `BudgetSpentError` if no more calls are to be made.
        """
        if self._journal.is_asking:
            return self.inner.complete(request)
        slot, self._slot = self._slot, self._slot + 1
        answer = self._asker.answer(self._ask, slot, request)
        if isinstance(answer, BackendError):
            raise answer
        return answer
