"""A server of Chat Completions that answers with a script, and what it may say."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def completion(content="hi", reason="stop", usage=(5, 2), **message):
    body = {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "m-2",
        "choices": [
            {
                "index": 0,
                "finish_reason": reason,
                "message": {"role": "assistant", "content": content, **message},
            }
        ],
    }
    if usage is not None:
        names = ("prompt_tokens", "completion_tokens")
        body["usage"] = {**dict(zip(names, usage, strict=True)), "total_tokens": sum(usage)}
    return 200, body, {}


def failure(status, message="no", headers=None, **fields):
    return status, {"error": {"message": message, **fields}}, headers or {}


class Server:
    """Answers with a script, one entry a request; the last entry for all further ones."""

    def __init__(self):
        self.script, self.asked, self.headers = [], [], []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                outer.asked.append(json.loads(body))
                outer.headers.append({k.lower(): v for k, v in self.headers.items()})
                entry = outer.script[min(len(outer.asked), len(outer.script)) - 1]
                if callable(entry):
                    entry(self)
                    return
                status, payload, headers = entry
                raw = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
                self.send_response(status)
                for name, value in {"content-type": "application/json", **headers}.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, *args):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_port}/v1"
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()
