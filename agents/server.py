"""A chat model behind an OpenAI-compatible endpoint on this machine: ``POST /v1/chat/completions``
and ``/v1/responses``, and ``GET /v1/models``.

For trying any client out against the simulated model, with all that may go wrong on the way. The
ground truth of a fault travels in headers of its own, which clients do not look at.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Sequence
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

from kernelwright.agents.chat import BackendError, ChatModel, ChatRequest, Completion
from kernelwright.agents.envelopes import (
    RequestError,
    chat_body,
    forced_tool,
    parse_chat,
    parse_responses,
    responses_body,
)
from kernelwright.agents.wire_faults import FINE, WIRE_FAULTS, Reply, Script

_log = logging.getLogger(__name__)
MOST_BYTES = 8 * 1024 * 1024
INJECTED_HEADER = "x-injected"
SECONDS_HEADER = "x-virtual-seconds"
WIRE_HEADER = "x-wire-fault"
_STATUS = {"transient": 503, "content": 502, "permanent": 400, "repairable": 400}
CHAT, RESPONSES, MODELS = "/v1/chat/completions", "/v1/responses", "/v1/models"
# How long a call that hangs is kept open.
HANG_S = 600.0


class ChatServer(ThreadingHTTPServer):
    """A server that answers for a model once its ``serve_forever`` is called.

    Args:
        model: who answers.
        script: what goes wrong on the way; nothing unless given.
        names: of the models that it lists, all of which are this one; its own unless given. A
            request for another one is refused, as real servers do.
        host: of this machine.
        port: any free one if 0; ``server_port`` says which.
    """

    daemon_threads = True

    def __init__(
        self,
        model: ChatModel,
        script: Script | None = None,
        *,
        names: Sequence[str] = (),
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        self.model, self.script = model, script or Script()
        self.names = tuple(names) or (model.model,)
        self.closing = threading.Event()
        super().__init__((host, port), _Handler)

    @property
    def url(self) -> str:
        """What clients take for their base URL."""
        return f"http://{self.server_address[0]!s}:{self.server_port}/v1"

    def server_close(self) -> None:
        """Let go of the port, and of calls that hang."""
        self.closing.set()
        super().server_close()

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is no news."""
        _log.debug("a call from %s broke off", client_address, exc_info=True)


def chat_server(
    model: ChatModel,
    script: Script | None = None,
    *,
    names: Sequence[str] = (),
    host: str = "127.0.0.1",
    port: int = 0,
) -> ChatServer:
    """A server for a model, see `ChatServer`."""
    try:
        return ChatServer(model, script, names=names, host=host, port=port)
    except OSError as error:
        expected = f"a port of {host} that is free (0 is any)"
        raise OSError(f"port: expected {expected}, found {port} ({error.strerror})") from None


class _Handler(BaseHTTPRequestHandler):
    server: ChatServer
    protocol_version = "HTTP/1.1"
    # Headers and body are two writes; the second would wait until the first is acknowledged.
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        """The models that there are."""
        path, names = self.path.rstrip("/"), self.server.names
        if path == MODELS:
            self._send(_json(200, {"object": "list", "data": [_entry(name) for name in names]}))
        elif path.startswith(f"{MODELS}/"):
            name = unquote(path.removeprefix(f"{MODELS}/"))
            self._send(_json(200, _entry(name)) if name in names else self._no_model(name))
        else:
            self._send(_error(404, f"expected {MODELS}, found {self.path:.80}"))

    def do_POST(self) -> None:
        """A completion, or an error in the form that clients know."""
        try:
            size = int(self.headers.get("content-length", ""))
        except ValueError:
            size = -1
        if not 0 <= size <= MOST_BYTES:
            self.close_connection = True
            found = f"expected a body of at most {MOST_BYTES} bytes with its length"
            self._send(_error(413, found))
            return
        body, path = self.rfile.read(size), self.path.rstrip("/")
        if path not in (CHAT, RESPONSES):
            self._send(_error(404, f"expected {CHAT} or {RESPONSES}, found {self.path:.80}"))
            return
        try:
            request = parse_chat(body) if path == CHAT else parse_responses(body)
            is_known = request.model in self.server.names
            self._send(
                self._reply(request, path, body) if is_known else self._no_model(request.model)
            )
        except RequestError as error:
            self._send(_error(400, str(error)))
        except BackendError as error:
            self._send(_error(_STATUS[error.kind], error.message))

    def _reply(self, request: ChatRequest, path: str, body: bytes) -> Reply:
        """The model's answer, and what becomes of it on the way.

        Raises:
            BackendError: if the model has none.
        """
        completion = self.server.model.complete(request)
        if path == CHAT:
            whole = chat_body(completion, forced_tool(body))
        else:
            whole = responses_body(completion)
        name = self.server.script.next(request)
        if name == FINE:
            return replace(_json(200, whole), headers=_truth(completion))
        reply = WIRE_FAULTS[name](whole)
        return replace(reply, headers={**reply.headers, WIRE_HEADER: name})

    def _no_model(self, name: str) -> Reply:
        known = ", ".join(self.server.names)
        said = f"The model `{name:.80}` does not exist: expected {known}"
        return _error(404, said, param="model", code="model_not_found")

    def _send(self, reply: Reply) -> None:
        if reply.manner != "whole":
            self.close_connection = True
        if reply.manner == "hang":
            self.server.closing.wait(HANG_S)
        if reply.manner in ("hang", "drop"):
            return
        self.send_response(reply.status)
        self.send_header("content-type", reply.content_type)
        self.send_header("content-length", str(len(reply.body)))
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.end_headers()
        is_cut = reply.manner == "cut"
        self.wfile.write(reply.body[: len(reply.body) // 2] if is_cut else reply.body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: who runs the server says what there is to say."""


def _json(status: int, body: dict[str, Any]) -> Reply:
    return Reply(status, json.dumps(body).encode())


def _entry(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "kernelwright"}


def _error(
    status: int, message: str, *, param: str | None = None, code: str | None = None
) -> Reply:
    error = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    return _json(status, {"error": error})


def _truth(completion: Completion) -> dict[str, str]:
    headers = {SECONDS_HEADER: f"{completion.seconds:.3f}"}
    if completion.injected is not None:
        headers[INJECTED_HEADER] = completion.injected
    return headers
