"""The client of a server, made so that a question goes to that server alone, and an answer cannot
fill the memory.

The client library follows redirects with the whole question in hand, names the user's organisation
to any server, and reads and unpacks an answer of any size. A server of this machine is asked
without a proxy.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Iterator
from typing import Any

from kernelwright.agents.backends.addresses import bare, host_of, is_here
from kernelwright.agents.backends.failures import TooLateError

# An answer of a million tokens is about 6 MB of JSON.
MOST_BYTES = 16 * 1024 * 1024


class TooMuchError(Exception):
    """An answer that is larger than any that could be of use."""


def connect(key: str, base_url: str | None, *, is_named: bool) -> Any:
    """A client of OpenAI's library.

    Args:
        key: sent with every request.
        base_url: the server's; OpenAI's if None.
        is_named: whether the campaign names the server. What the environment says of an account
            is meant for OpenAI's, or for the one that the environment names.

    Raises:
        ValueError: if the environment's proxies make no sense.
    """
    import openai

    direct: dict[str, Any] = {}
    if base_url is not None and is_here(base_url):
        host = host_of(base_url)
        direct = {f"all://[{host}]" if ":" in host else f"all://{host}": None}
    http = openai.DefaultHttpxClient(
        follow_redirects=False, mounts=direct, event_hooks={"response": [_within_bounds]}
    )
    client = openai.OpenAI(api_key=key, base_url=base_url, max_retries=0, http_client=http)
    weakref.finalize(client, http.close)  # a client closes only those that it made itself
    if is_named:
        client.organization = client.project = None
    return client


def _within_bounds(response: Any) -> None:
    """Have an answer read in pieces, unpacked as they are, and given up once it is too much."""
    limit_s = response.request.extensions.get("timeout", {}).get("read")
    end = float("inf") if limit_s is None else time.monotonic() + limit_s
    pieces = response.iter_bytes

    def bounded(chunk_size: int | None = None) -> Iterator[bytes]:
        size = 0
        for piece in pieces(chunk_size):
            size += len(piece)
            if size > MOST_BYTES:
                raise TooMuchError(f"expected an answer of at most {MOST_BYTES} bytes, found more")
            if time.monotonic() > end:
                raise TooLateError  # of a call that nobody waits for any more
            yield piece

    response.iter_bytes = bounded


def sent_elsewhere(location: str) -> str:
    """What to do about a redirect, with where it leads."""
    where = f" to {bare(location):.200}" if bare(location) else ""
    return f"the server sends requests on{where}; a base_url that answers itself is expected"
