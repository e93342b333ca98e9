"""What is known of servers, so that each is probed once and not by every run: a file a server and
model in the user's cache folder, with a date.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kernelwright.agents.backends.addresses import is_here
from kernelwright.agents.chat import digest
from kernelwright.env.compiler.runtime.folders import user_folder

# Servers are replaced by newer ones that can do more, those on one's own machine by others.
BELIEVED_DAYS, BELIEVED_DAYS_HERE = 30, 1
DAY_S = 86400.0


class Servers:
    """Notes on servers by base URL, model and interface.

    What cannot be read or written is not known: the notes save calls and decide nothing else.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._given = folder

    def _place(self, about: Mapping[str, str]) -> Path:
        folder = self._given if self._given is not None else user_folder("servers")
        return folder / f"{digest(dict(about))}.json"

    def read(self, about: Mapping[str, str], now: float | None = None) -> dict[str, Any] | None:
        """What was learned of a server, if that was not too long ago."""
        try:
            data = json.loads(self._place(about).read_text(encoding="utf-8"))
            age_s = (time.time() if now is None else now) - float(data["at"])
        except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
            return None
        learned = data.get("learned")
        days = BELIEVED_DAYS_HERE if is_here(about["base_url"]) else BELIEVED_DAYS
        is_fresh = 0 <= age_s < days * DAY_S
        return learned if is_fresh and isinstance(learned, dict) else None

    def write(self, about: Mapping[str, str], learned: Mapping[str, Any]) -> None:
        """Remember what was learned."""
        at = time.time()
        date = time.strftime("%Y-%m-%d", time.gmtime(at))
        data = {**about, "learned": dict(learned), "date": date, "at": at}
        try:
            place = self._place(about)
            place.parent.mkdir(parents=True, exist_ok=True)
            temporary = place.with_name(f".{place.name}.new")
            temporary.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
            temporary.replace(place)
        except OSError:
            return
