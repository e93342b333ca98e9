"""What a record keeps of a question: the hashes of its messages and of their lines, each once.

A conversation that goes on, and the system message of all of them, are kept by a reference to the
call that had the same beginning. `in_full` follows the references, so that whoever compares a
question with the recorded one can say in which message and line they differ.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from kernelwright.agents.chat import ChatRequest, line_hashes, text_hash

# Beginnings of conversations that may be referred to: those used last.
MOST_KNOWN = 4096
# Hexadecimal digits of a message's hash: it says which message differs, the key that one does.
SHORT = 8

# The data of the call at an ask and a slot.
Calls: TypeAlias = Callable[[int, int], Mapping[str, Any]]


class Questions:
    """The questions of a search as they are recorded, in the order in which they are asked."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, tuple[int, int, int]] = OrderedDict()

    def kept(self, ask: int, slot: int, request: ChatRequest) -> dict[str, Any]:
        """What is recorded of a question: ``key model request``, of its ``new`` messages role, hash
        and hashes of lines each, and as ``after`` the call whose first messages come before them
        (ask, slot, how many).
        """
        heads, head = [], ""
        for role, text in request.messages:
            head = text_hash(f"{head}{role}{text_hash(text)}")
            heads.append(head)
        count = next((n for n in range(len(heads), 0, -1) if heads[n - 1] in self._known), 0)
        after = {"after": list(self._known[heads[count - 1]])} if count else {}
        for number, head in enumerate(heads, 1):
            if number <= count:
                if head in self._known:
                    self._known.move_to_end(head)
            else:
                self._known[head] = (ask, slot, number)
        while len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)
        new = [
            [role, text_hash(text)[:SHORT], line_hashes(text)]
            for role, text in request.messages[count:]
        ]
        data = {"key": request.key, "model": request.model, "request": request.settings}
        return data | {"new": new} | after


def in_full(data: Mapping[str, Any], calls: Calls) -> dict[str, Any]:
    """The data of a call with the hashes of all its messages in ``request`` and ``lines``.

    Args:
        data: as `Questions.kept`, or of a record that has no references.
        calls: finds the calls that are referred to.
    """
    if "new" not in data:
        return dict(data)
    messages = _messages(data, calls)
    hashes = {f"message {i} ({role})": short for i, (role, short, _) in enumerate(messages)}
    lines = [lines for _, _, lines in messages]
    return {**data, "request": {**hashes, **data["request"]}, "lines": lines}


def _messages(data: Mapping[str, Any], calls: Calls) -> list[list[str]]:
    """Role, hash and hashes of lines of each message."""
    pieces, most = [], None
    while True:
        if "new" not in data:  # recorded before there were references
            named = [name for name in data["request"] if name.startswith("message ")]
            roles = [name.partition("(")[2].rstrip(")") for name in named]
            hashes = [data["request"][name] for name in named]
            own = [list(each) for each in zip(roles, hashes, data["lines"], strict=True)]
            pieces.append(own[:most])
            break
        after = data.get("after")
        before = after[2] if after else 0
        pieces.append(data["new"] if most is None else data["new"][: most - before])
        if after is None:
            break
        most = before
        data = calls(after[0], after[1])
    return [each for piece in reversed(pieces) for each in piece]
