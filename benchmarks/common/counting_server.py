"""The simulated model behind an endpoint, in a process of its own that writes down every question
as it arrives.

    counting_server.py LOG [DELAY_S]

LOG gets a line a question: the first 16 digits of its key, which are in the answer's id too. Prints
its URL, and answers until its standard input ends.
"""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

from kernelwright.agents.chat import ChatModel, ChatRequest, Completion
from kernelwright.agents.mock_server import mock_endpoint

SEED, FAULTS = 5, "0.15"
# It is one model, and those of an ensemble.
NAMES = ("mock", "good", "poor")


class Counting:
    """A model that writes down what it is asked, and takes its time."""

    priced, missing = True, ()

    def __init__(self, inner: ChatModel, log: Path, delay_s: float) -> None:
        self.model, self._inner, self._log, self._delay_s = inner.model, inner, log, delay_s

    def complete(self, request: ChatRequest) -> Completion:
        """The answer, after a while."""
        with self._log.open("a") as log:
            log.write(f"{request.key[:16]}\n")
        time.sleep(self._delay_s)
        return self._inner.complete(request)


def main() -> None:
    """Serve until nobody wants it any more."""
    log, delay_s = Path(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 0.0
    server = mock_endpoint(seed=SEED, faults=FAULTS, names=NAMES)
    server.model = Counting(server.model, log, delay_s)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.url, flush=True)
    sys.stdin.read()
    server.shutdown()
    server.server_close()


if __name__ == "__main__":
    main()
