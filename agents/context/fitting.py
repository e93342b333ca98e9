"""Questions kept within a limit of tokens: pages by their parts (`shrink`), conversations by their
oldest turns. The system message, the task and the last turn stay.

What was cut is an event of its call. Where a server says that a question is too long for its model,
the limit is lowered for the rest of the search and the question cut to it; the record has the
server's answer, so a search that runs again lowers it at the same place.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from kernelwright.agents.context.shrink import Messages, Values, shrink, tokens_of

# Which share of a question that was too long the next one may be.
SHARE = 0.6
# Pages that can be cut further, and questions of which it is known what was cut.
MOST_KNOWN = 256
TURNS = "turns"

Render: TypeAlias = Callable[[Values], Messages]


class Fitting:
    """Cuts the questions of one search.

    Args:
        tokens: the limit at first; None for none.
    """

    def __init__(self, tokens: int | None) -> None:
        self.tokens = tokens
        self._pages: OrderedDict[Messages, tuple[Values, Render]] = OrderedDict()
        self._cuts: OrderedDict[Messages, dict[str, Any]] = OrderedDict()

    def page(self, values: Values, render: Render) -> Messages:
        """The first messages of a conversation."""
        fitted = shrink(values, self.tokens, render)
        self._keep(fitted.messages, values, render)
        self._note(fitted.messages, dict(fitted.cut))
        return fitted.messages

    def room(self, messages: Messages, more: Messages) -> int | None:
        """The tokens that are left beside a conversation's page and what comes next; None for any
        number.
        """
        if self.tokens is None:
            return None
        page, _ = _parted(messages)
        return self.tokens - tokens_of((*page, *more))

    def conversation(self, messages: Messages) -> Messages:
        """A conversation without its oldest turns, then with a smaller page, as far as that is
        needed.
        """
        limit = self.tokens
        if limit is None or tokens_of(messages) <= limit:
            return messages
        page, turns = _parted(messages)
        gone = 0
        while len(turns) > 2 and tokens_of((*page, *turns)) > limit:
            turns, gone = turns[2:], gone + 1
        cut = {TURNS: gone} if gone else {}
        if tokens_of((*page, *turns)) > limit and page in self._pages:
            values, render = self._pages[page]
            fitted = shrink(values, limit - tokens_of(turns), render)
            page, cut = fitted.messages, cut | dict(fitted.cut)
            self._keep(page, values, render)
        whole = (*page, *turns)
        self._note(whole, cut)
        return whole

    def shorter(self, messages: Messages) -> Messages | None:
        """A question that was too long, cut; None if nothing more can be cut of it."""
        size = tokens_of(messages)
        limit = int(size * SHARE)
        self.tokens = limit if self.tokens is None else min(self.tokens, limit)
        fitted = self.conversation(messages)
        return fitted if tokens_of(fitted) < size else None

    def cut(self, messages: Messages) -> Mapping[str, Any] | None:
        """What was cut of a question, as it is recorded: the budget, the tokens that are left, how
        many entries of each part, and the tokens that are over; None if nothing was.
        """
        return self._cuts.get(messages)

    def _keep(self, page: Messages, values: Values, render: Render) -> None:
        self._pages[page] = values, render
        if len(self._pages) > MOST_KNOWN:
            self._pages.popitem(last=False)

    def _note(self, messages: Messages, cut: Mapping[str, int]) -> None:
        limit, tokens = self.tokens, tokens_of(messages)
        over = 0 if limit is None else max(0, tokens - limit)
        if not (cut or over):
            return
        self._cuts[messages] = {"budget": limit, "tokens": tokens, "cut": cut, "over": over}
        if len(self._cuts) > MOST_KNOWN:
            self._cuts.popitem(last=False)


def _parted(messages: Messages) -> tuple[Messages, Messages]:
    """The page of a conversation, which ends with its first question, and what came after."""
    roles = [role for role, _ in messages]
    first = roles.index("user") + 1 if "user" in roles else len(messages)
    return messages[:first], messages[first:]
