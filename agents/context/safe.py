"""Text of others made fit to be quoted: no control or hidden characters, nothing that a server
would take for the end of a message, no secret, a bounded length.

It is put behind fences that it cannot close (`dialects.fences.fenced`), or made one line without
backticks. What it says is data all the same, and the prompts say so.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from kernelwright.agents.chat import Message

_ESCAPES = re.compile("\x1b\\[[0-?]*[ -/]*[@-~]|\x1b\\][^\x07\x1b]*(?:\x07|\x1b\\\\)?")
# Control characters but tab and line end; what has no width, turns the direction of writing or is
# no character at all (Unicode 15, general categories Cc, Cf, Cs, and variation selectors).
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U000e0000-\U000e0fff]"
)
# How servers mark the turns of a conversation. Some read such marks wherever they stand, so they
# are taken apart by a blank, which means nothing in C.
_TURNS = re.compile(
    r"<(?=[|\uff5c])"
    r"|<(?=/?(?:s|bos|eos|think|system|user|assistant|tool|im_start|im_end|start_of_turn"
    r"|end_of_turn)>)"
    r"|<(?=<?/?<?SYS>>)"
    r"|\[(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\])",
    re.IGNORECASE,
)
# Keys as their issuers write them. What has no end is looked for no farther than they are long.
_KEYS = re.compile(
    r"\b(?:sk|pk|rk)-[A-Za-z0-9_-]{16,}|\bgh[opsur]_[A-Za-z0-9]{20,}|\bAKIA[0-9A-Z]{16}\b"
    r"|\bhf_[A-Za-z0-9]{20,}|\bAIza[0-9A-Za-z_-]{30,}|\bxox[abprs]-[A-Za-z0-9-]{10,}"
    r"|\beyJ[A-Za-z0-9_-]{10,1000}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"
    r"|-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----"
    r"(?:.{0,8000}?-----END [A-Z ]{0,40}PRIVATE KEY-----)?",
    re.DOTALL,
)
# What one of them begins with; to look for these is a hundred times faster.
_BEGINNINGS = (
    *("sk-", "pk-", "rk-", "ghp_", "gho_", "ghs_", "ghu_", "ghr_", "AKIA", "hf_", "AIza", "xox"),
    *("eyJ", "PRIVATE KEY"),
)
_SECRET_NAME = re.compile(r"key|token|secret|passw|credential|auth(?!or)", re.IGNORECASE)
REMOVED = "[removed]"


def clean(text: str, most: int | None = None) -> str:
    """The text without what cannot be seen; of one longer than ``most`` the two ends."""
    if most is not None and len(text) > 4 * most:  # what is thrown away need not be read
        text = f"{text[: 2 * most]}{text[-2 * most :]}"
    text = _ESCAPES.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    text = _TURNS.sub(lambda found: f"{found[0]} ", _HIDDEN.sub("", text))
    if most is not None and len(text) > most:
        half = most // 2
        text = f"{text[:half]}\n…\n{text[-half:]}"
    return text


def one_line(text: str, most: int) -> str:
    """The text as one line that may stand between backticks; of a longer one the beginning."""
    line = " ".join(clean(text, 2 * most).split()).replace("`", "'")
    return line if len(line) <= most else f"{line[:most]} …"


def secrets_of(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The values of an environment that look like keys, the longest first: those whose name says
    so, and any that is as long and mixed as keys are.
    """
    found = {value for name, value in environment.items() if _is_secret(name, value)}
    return tuple(sorted(found, key=lambda value: (-len(value), value)))


@lru_cache(maxsize=1024)
def _is_secret(name: str, value: str) -> bool:
    return bool(len(value) >= 8 and _SECRET_NAME.search(name)) or _is_mixed(value)


def _is_mixed(value: str) -> bool:
    is_word = len(value) >= 20 and re.fullmatch(r"[A-Za-z0-9_.+=-]+", value) is not None
    return is_word and bool(re.search(r"\d", value)) and bool(re.search(r"[A-Za-z]", value))


def redacted(text: str, secrets: Iterable[str]) -> str:
    """The text without keys: those that are listed, and whatever is written as keys are."""
    for secret in secrets:
        if secret in text:
            text = text.replace(secret, REMOVED)
    if not any(beginning in text for beginning in _BEGINNINGS):
        return text
    return _KEYS.sub(REMOVED, text)


def without_secrets(
    messages: Iterable[Message], secrets: Sequence[str] | None = None
) -> tuple[Message, ...]:
    """Messages without keys: those given, or else of this process's environment."""
    known = secrets_of(os.environ) if secrets is None else secrets
    return tuple((role, redacted(text, known)) for role, text in messages)
