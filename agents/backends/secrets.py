"""Keys in what servers send back: none gets any further."""

from __future__ import annotations

import re
from dataclasses import replace

from kernelwright.agents.chat import Completion

HIDDEN = "[key]"
MOST_TEXT = 1000
_LOOKS_LIKE_A_KEY = re.compile(r"\b(sk|pk|key|hf|gsk)[-_][\w*.-]{6,}")


def scrub(text: str, key: str) -> str:
    """A message without the key, whole or as servers abbreviate it."""
    text = text.replace(key, HIDDEN) if key else text
    return _LOOKS_LIKE_A_KEY.sub(HIDDEN, text)[:MOST_TEXT]


def scrubbed(completion: Completion, key: str) -> Completion:
    """A completion without the key, should a server tell it back."""
    if not key:
        return completion
    texts = {
        name: text.replace(key, HIDDEN)
        for name in ("text", "finish_reason", "model", "id", "refusal")
        if isinstance(text := getattr(completion, name), str) and key in text
    }
    return replace(completion, **texts) if texts else completion
