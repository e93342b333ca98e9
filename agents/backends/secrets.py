"""Keys in what servers send back: none gets any further, be it whole or as they abbreviate it."""

from __future__ import annotations

import re
from dataclasses import replace

from kernelwright.agents.chat import Completion

HIDDEN = "[key]"
# Characters of a message, and of what it is made from: a key at the end of the one is whole in the
# other.
MOST_TEXT, MOST_READ = 1000, 10_000
# Servers that ignore keys are given words like "ollama", which are no secrets and may stand in any
# program.
LEAST_KEY, LEAST_PART = 12, 10
_LOOKS_LIKE_A_KEY = re.compile(r"\b(sk|pk|key|hf|gsk)[-_][\w*.-]{6,}")


def fault_of(key: str) -> str | None:
    """Why a key cannot be sent, without telling it; None if it can."""
    wrong = next((i for i, c in enumerate(key) if not "!" <= c <= "~"), None)
    if wrong is None:
        return None
    return f"expected a key of printable ASCII characters, found another one at {wrong + 1}"


def scrub(text: str, key: str) -> str:
    """A message without the key, without anything that looks like one, and without characters that
    do something to a terminal.
    """
    plain = "".join(c if c.isprintable() or c in "\n\t" else "?" for c in text[:MOST_READ])
    return _LOOKS_LIKE_A_KEY.sub(HIDDEN, without(plain, key))[:MOST_TEXT]


def without(text: str, key: str) -> str:
    """A text without the key, nor its beginning."""
    if len(key) < LEAST_KEY:
        return text
    text = text.replace(key, HIDDEN)
    return re.sub(re.escape(key[:LEAST_PART]) + r"[\w*.-]*", HIDDEN, text)


def scrubbed(completion: Completion, key: str) -> Completion:
    """A completion without the key, should a server tell it back."""
    return replace(
        completion,
        text=_without(completion.text, key),
        finish_reason=_without(completion.finish_reason, key),
        model=without(completion.model, key),
        id=without(completion.id, key),
        refusal=_without(completion.refusal, key),
    )


def _without(text: str | None, key: str) -> str | None:
    return None if text is None else without(text, key)
