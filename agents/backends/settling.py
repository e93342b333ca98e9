"""What is put around every backend before anything else: its answers are counted, its failures
have a kind. So limits, prices and budgets hold of a backend that says nothing of either.
"""

from __future__ import annotations

from dataclasses import replace
from http.client import HTTPException
from urllib.error import HTTPError

from kernelwright.agents.backends.failures import kind_of
from kernelwright.agents.backends.wrappers import Around
from kernelwright.agents.chat import (
    BackendError,
    ChatRequest,
    Completion,
    ErrorKind,
    estimate_tokens,
    price,
)


class Settled(Around):
    """A backend whose answers say how many tokens they were, and whose failures say whether to try
    again.
    """

    def complete(self, request: ChatRequest) -> Completion:
        """The answer; what was not counted is estimated, what was not priced has the price of the
        backend's own list.

        Raises:
            BackendError: the backend's, or one in place of a standard error (`failure_of`).
            TypeError: if it gave something that is no completion.
        """
        try:
            answer: object = self.inner.complete(request)
        except (OSError, HTTPException) as error:
            raise failure_of(error) from error
        if not isinstance(answer, Completion):
            found = f"{type(answer).__name__} {answer!r:.80}"
            raise TypeError(f"backend {self.model}: expected a Completion, found {found}")
        # An answer of several backends was settled where it was given, and has its price.
        return answer if answer.answered_by else self._priced(counted(answer, request))

    def _priced(self, answer: Completion) -> Completion:
        if answer.usd or self.usd_per_million is None:
            return answer
        tokens = (answer.prompt_tokens, answer.completion_tokens)
        return replace(answer, usd=price(*tokens, self.usd_per_million, answer.cached_tokens))


def failure_of(error: OSError | HTTPException) -> BackendError:
    """A standard error as one of a backend: timeouts, connections and whatever else may pass are
    ``transient``, files that are missing or closed to us ``permanent``, and a status of HTTP is
    what it is from a server.
    """
    kind: ErrorKind = "transient"
    if isinstance(error, HTTPError):
        kind = kind_of(error.code, None, None, str(error))
    elif isinstance(error, FileNotFoundError | PermissionError | IsADirectoryError):
        kind = "permanent"
    return BackendError(kind, ": ".join(filter(None, (type(error).__name__, str(error)))))


def counted(answer: Completion, request: ChatRequest) -> Completion:
    """The answer with its tokens: those that were not counted are estimated from the texts, and
    marked. No question has none, and no text.
    """
    asked = sum(estimate_tokens(text) for _, text in request.messages)
    prompt = answer.prompt_tokens or asked
    completion = answer.completion_tokens or estimate_tokens(answer.text or answer.refusal or "")
    if (prompt, completion) == (answer.prompt_tokens, answer.completion_tokens):
        return answer
    return replace(answer, prompt_tokens=prompt, completion_tokens=completion, usage_estimated=True)
