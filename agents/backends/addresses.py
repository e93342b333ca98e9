"""Addresses of servers: which may be written down, and which are this machine's own."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from kernelwright.env.options import OptionError

# Where a base URL is looked for that no campaign names.
URL_VARIABLE = "OPENAI_BASE_URL"


def check_url(url: str, *, is_recorded: bool = True) -> None:
    """See that a base URL is one that paths can be added to; if it is recorded, nothing secret may
    stand in it.

    Raises:
        OptionError: if it is none; the URL is not repeated.
    """
    where = "" if is_recorded else f" in {URL_VARIABLE}"
    try:
        parts = urlsplit(url)
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets or a port that are none
        is_url = False
    if not is_url:
        expected = "a URL, as http://localhost:8000/v1"
        raise OptionError("base_url", expected, f"another text{where}")
    if parts.query or parts.fragment or (is_recorded and (parts.username or parts.password)):
        without = "user, password and query" if is_recorded else "query"
        expected = f"a URL without {without} (the key comes from key_env)"
        raise OptionError("base_url", expected, f"one at {parts.hostname} with more{where}")


def host_of(url: str) -> str:
    """The host of a URL, in lower case; empty where there is none."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def is_here(url: str) -> bool:
    """Whether a server is on this machine."""
    host = host_of(url)
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
    return address.is_loopback or address.is_unspecified


def bare(url: str) -> str:
    """A URL without user, password and query, as it may be shown; empty where it is none."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}" if host else parts.path
