"""The simulated model as an endpoint, with its options as they are written on a command line."""

from __future__ import annotations

from collections.abc import Sequence

from kernelwright.agents.backends.mock import Mock
from kernelwright.agents.server import ChatServer, chat_server
from kernelwright.agents.wire_faults import read_rates, read_script


def mock_endpoint(
    *,
    seed: int = 0,
    port: int = 0,
    persona: str | None = None,
    skill: float | None = None,
    faults: str | None = None,
    wire: str = "",
    names: Sequence[str] = (),
) -> ChatServer:
    """A server of the simulated model, not started yet.

    Args:
        seed: of answers and of what goes wrong.
        port: any free one if 0.
        persona: a simulated model of its own.
        skill: the persona's unless given.
        faults: a rate, a profile's name, or rates by class (``cheating=0.1,empty=0.1``).
        wire: rates (``drop=0.1``) or turns (``ok,drop,ok``) of what goes wrong on the way.
        names: under which it is served; its own unless given.

    Raises:
        OptionError: if an option makes no sense.
        OSError: if the port is taken.
    """
    model = Mock(seed=seed, persona=persona, skill=skill, faults=_faults(faults))
    return chat_server(model, read_script(wire, seed), names=names, port=port)


def _faults(text: str | None) -> float | str | dict[str, float] | None:
    if text is None:
        return None
    if "=" in text:
        return read_rates("faults", text)
    try:
        return float(text)
    except ValueError:
        return text
