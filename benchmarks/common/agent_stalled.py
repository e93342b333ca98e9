"""Servers that accept a call and do not answer it: how long each holds a call, and a campaign."""

from __future__ import annotations

import socketserver
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from table import Row

from kernelwright.agents.backends.openai import OpenAI
from kernelwright.agents.chat import BackendError, ChatRequest
from kernelwright.agents.report import classified
from kernelwright.configs.build import build
from kernelwright.configs.load import read_config
from kernelwright.search.campaign import Campaign, DriverError
from kernelwright.search.store import MemoryStore
from kernelwright.search.trial import MODEL_CALL

DEADLINE_S, GRACE_S = 2.0, 1.0
DROP_S, REDIRECT_S = 0.2, 0.3
CONFIG = "gemm_model_llm"
Send = Callable[[bytes], None]
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"


class Server(socketserver.ThreadingTCPServer):
    """Reads requests and answers in one manner, until it is closed or the client is gone."""

    daemon_threads, allow_reuse_address = True, True

    def __init__(self, manner: Callable[[Server, Send], None]) -> None:
        self.manner, self.requests, self.closing = manner, 0, threading.Event()
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        """What clients take for their base URL."""
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is no news."""


class _Handler(socketserver.StreamRequestHandler):
    server: Server

    def handle(self) -> None:
        while self._read():
            self.server.requests += 1
            self.server.manner(self.server, self.wfile.write)

    def _read(self) -> bool:
        """Whether there was a request."""
        size, line = 0, self.rfile.readline()
        while line.strip():
            name, _, value = line.decode("latin-1").partition(":")
            size = int(value) if name.lower() == "content-length" else size
            line = self.rfile.readline()
        self.rfile.read(size)
        return bool(line)


def _says_nothing(server: Server, send: Send) -> None:
    server.closing.wait()


def _stalls_after_its_headers(server: Server, send: Send) -> None:
    send(HEAD + b"content-length: 1000\r\n\r\n")
    server.closing.wait()


def _trickles(server: Server, send: Send) -> None:
    send(HEAD + b"content-length: 1000000\r\n\r\n")
    _drop_by_drop(server, send)


def _trickles_its_headers(server: Server, send: Send) -> None:
    send(HEAD + b"x-more: ")
    _drop_by_drop(server, send)


def _trickles_in_chunks(server: Server, send: Send) -> None:
    send(HEAD + b"transfer-encoding: chunked\r\n\r\n")
    _drop_by_drop(server, send, b"1\r\n \r\n")


def _drop_by_drop(server: Server, send: Send, drop: bytes = b" ") -> None:
    while not server.closing.wait(DROP_S):
        send(drop)


def _redirects_to_itself(server: Server, send: Send) -> None:
    # The URL of whichever interface was asked is below this one, and so redirected again.
    place = server.url.encode() + b"/chat/completions"
    send(b"HTTP/1.1 307 Away\r\ncontent-length: 0\r\nlocation: " + place + b"\r\n\r\n")


def _redirects_slowly(server: Server, send: Send) -> None:
    server.closing.wait(REDIRECT_S)
    _redirects_to_itself(server, send)


def _wants_an_hour(server: Server, send: Send) -> None:
    body = b'{"error": {"message": "Rate limit reached for requests", "type": "requests"}}'
    size = str(len(body)).encode()
    send(b"HTTP/1.1 429 Busy\r\nretry-after: 3600\r\ncontent-type: application/json\r\n")
    send(b"content-length: " + size + b"\r\n\r\n" + body)


MANNERS = (
    _says_nothing,
    _stalls_after_its_headers,
    _trickles,
    _trickles_its_headers,
    _trickles_in_chunks,
    _redirects_to_itself,
    _redirects_slowly,
    _wants_an_hour,
)


@contextmanager
def serving(manner: Callable[[Server, Send], None]) -> Iterator[Server]:
    """A server at work."""
    server = Server(manner)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield server
    finally:
        server.closing.set()
        server.shutdown()
        server.server_close()


def called(server: Server, api: str) -> tuple[str, float]:
    """One call: how its error is classed, and the seconds it took."""
    backend = OpenAI(model="m", base_url=server.url, deadline=DEADLINE_S, api=api)
    request = ChatRequest("m", (("user", "hello"),), 100, 0.5, 1)
    began = time.monotonic()
    try:
        backend.complete(request)
        found = "a completion"
    except BackendError as error:
        found = error.kind
    return found, time.monotonic() - began


def campaigned(server: Server) -> tuple[str, float]:
    """A campaign of one call: how that is filed, and the seconds it took."""
    options = f"name: openai, model: m, base_url: '{server.url}', deadline: {DEADLINE_S}"
    changes = [f"agents={{backend: {{{options}}}}}", "budget={trials: 4, calls: 1}"]
    plan, store = build(read_config(CONFIG, changes)).plan, MemoryStore()
    began = time.monotonic()
    try:
        Campaign(plan, store).run()
    except DriverError as error:
        return getattr(error.__cause__, "kind", str(error)), time.monotonic() - began
    took = time.monotonic() - began
    assert [e.kind for e in store.events()].count(MODEL_CALL) == 1
    (found,) = classified(store.events()).values()
    return found, took


def threads_left() -> int:
    """How many calls are still under way, a while after they were given up."""
    time.sleep(4 * DROP_S)
    return sum("(run)" in thread.name for thread in threading.enumerate())


def stalled() -> Iterator[Row]:
    """A row a server."""
    openai_is_imported()
    left = 0
    for manner in MANNERS:
        with serving(manner) as server:
            # A redirect is not followed; asking again would come to the same.
            is_redirect = manner in (_redirects_to_itself, _redirects_slowly)
            kind, filed = ("permanent", "permanent") if is_redirect else ("transient", "lost")
            calls = [(f"call ({api})", kind, *called(server, api)) for api in APIS]
            requests = server.requests
            calls.append(("campaign of `llm`", filed, *campaigned(server)))
            left += threads_left()
        shown = ", ".join(f"{what} {found} {took:.2f} s" for what, _, found, took in calls)
        most = DEADLINE_S + GRACE_S
        good = all(found == wanted and took <= most for _, wanted, found, took in calls)
        if manner is _wants_an_hour:  # coming back is of no use
            shown, good = f"{shown}; {requests} requests of 2 calls", good and requests == 2
        what = f"a server that {manner.__name__.strip('_').replace('_', ' ')}"
        yield what, f"its class, within {most:g} s", shown, good
    yield "calls given up that still hold a thread", "0", str(left), left == 0


APIS = ("chat", "responses")


def openai_is_imported() -> None:
    """Import the client, which takes its time, before any call is timed."""
    import openai

    openai.OpenAI(api_key="none", base_url="http://127.0.0.1:9/v1").close()
