"""A chat model behind an OpenAI-compatible endpoint on this machine: ``POST /v1/chat/completions``
and ``GET /v1/models``.

For trying any client out against the simulated model. The ground truth of a fault travels in a
header of its own, which clients do not look at.
"""

from __future__ import annotations

import json
import logging
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from kernelwright.agents.chat import (
    ROLES,
    BackendError,
    ChatModel,
    ChatRequest,
    Completion,
    Message,
    canonical_schema,
)

_log = logging.getLogger(__name__)
MOST_BYTES = 8 * 1024 * 1024
DEFAULT_TOKENS = 4096
INJECTED_HEADER = "x-injected"
_STATUS = {"transient": 503, "content": 502, "permanent": 400, "repairable": 400}


class RequestError(ValueError):
    """A body that is no request: what was expected and what was found."""


def chat_server(model: ChatModel, *, host: str = "127.0.0.1", port: int = 0) -> ThreadingHTTPServer:
    """A server that answers for ``model`` once its ``serve_forever`` is called; port 0 is any free
    one, and ``server_port`` says which.
    """

    class Handler(_Handler):
        answering = model

    return _Server((host, port), Handler)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is no news."""
        _log.debug("a call from %s broke off", client_address, exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    answering: ChatModel
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """The one model that there is."""
        if self.path.rstrip("/") != "/v1/models":
            self._fail(404, f"expected /v1/models, found {self.path:.80}")
            return
        entry = {"id": self.answering.model, "object": "model", "owned_by": "kernelwright"}
        self._send(200, {"object": "list", "data": [entry]})

    def do_POST(self) -> None:
        """A completion, or an error in the form that clients know."""
        try:
            size = int(self.headers.get("content-length", ""))
        except ValueError:
            size = -1
        if not 0 <= size <= MOST_BYTES:
            self.close_connection = True
            self._fail(413, f"expected a body of at most {MOST_BYTES} bytes with its length")
            return
        body = self.rfile.read(size)
        if self.path.rstrip("/") != "/v1/chat/completions":
            self._fail(404, f"expected /v1/chat/completions, found {self.path:.80}")
            return
        try:
            completion = self.answering.complete(parse_request(body))
        except RequestError as error:
            self._fail(400, str(error))
        except BackendError as error:
            self._fail(_STATUS[error.kind], error.message)
        else:
            self._send(200, completion_body(completion), completion.injected)

    def _fail(self, status: int, message: str) -> None:
        self._send(status, {"error": {"message": message, "type": "invalid_request_error"}})

    def _send(self, status: int, body: dict[str, Any], injected: str | None = None) -> None:
        raw = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(raw)))
        if injected is not None:
            self.send_header(INJECTED_HEADER, injected)
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: who runs the server says what there is to say."""


def parse_request(body: bytes) -> ChatRequest:
    """The request in the body of a call.

    Raises:
        RequestError: if there is none in it.
    """
    try:
        data = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise RequestError(f"expected JSON, found {error}") from None
    if not isinstance(data, dict):
        raise RequestError(f"expected an object, found {type(data).__name__}")
    if data.get("stream"):
        raise RequestError("stream: expected false; answers are sent whole")
    listed = data.get("messages")
    if not isinstance(listed, list):
        raise RequestError("messages: expected a list")
    limit: Any = data.get("max_completion_tokens", data.get("max_tokens", DEFAULT_TOKENS))
    wanted = data.get("response_format")
    wanted = wanted.get("json_schema") if isinstance(wanted, dict) else None
    schema = wanted.get("schema") if isinstance(wanted, dict) else None
    try:
        return ChatRequest(
            model=str(data.get("model", "")),
            messages=tuple(map(_message, listed)),
            max_tokens=int(limit),
            temperature=float(data.get("temperature", 1.0)),
            seed=int(data.get("seed", 0)),
            schema=canonical_schema(schema if isinstance(schema, dict) else None),
        )
    except (TypeError, ValueError, OverflowError) as error:
        raise RequestError(str(error)) from None


def _message(entry: Any) -> Message:
    role, content = (entry.get("role"), entry.get("content")) if isinstance(entry, dict) else (0, 0)
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        content = "".join(part for part in parts if isinstance(part, str))
    if role not in ROLES or not isinstance(content, str):
        raise RequestError(f"messages: expected a role of {ROLES} and text, found {entry!r:.80}")
    return role, content


def completion_body(completion: Completion) -> dict[str, Any]:
    """A completion in Chat Completions' words."""
    message = {
        "role": "assistant",
        "content": completion.text,
        "refusal": completion.refusal,
    }
    return {
        "id": completion.id,
        "object": "chat.completion",
        "created": 0,
        "model": completion.model,
        "choices": [{"index": 0, "finish_reason": completion.finish_reason, "message": message}],
        "usage": {
            "prompt_tokens": completion.prompt_tokens,
            "completion_tokens": completion.completion_tokens,
            "total_tokens": completion.tokens,
        },
    }
