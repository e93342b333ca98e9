"""Saved episodes, replayed: a claim about a policy can be checked by anyone who has the file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from kernelwright.env.gym.environment import SearchEnv

FIELDS = {
    "id": str,
    "kwargs": dict,
    "hashes": dict,
    "seed": int,
    "options": dict,
    "actions": list,
    "rewards": list,
    "outcome": dict,
}


class EpisodeError(ValueError):
    """An episode that is not what its file says: the file is damaged, or the replay differs."""


def validate(path: str | Path) -> float:
    """Replay a saved episode and return its total reward.

    Raises:
        EpisodeError: at the first difference, naming the step and both rewards, or the outcomes; if
            a data file is not the one the episode was played on; or if the file is not an episode.
    """
    path = Path(path)
    episode = _read(path)
    env = _make(path, episode)
    with _only_episode_errors(f"{path}: options"):
        env.reset(seed=episode["seed"], options=episode["options"])
    steps = zip(episode["actions"], episode["rewards"], strict=True)
    for number, (action, wanted) in enumerate(steps):
        with _only_episode_errors(f"{path}: step {number}"):
            _, reward, _, _, _ = env.step(np.int64(action))
        if reward != wanted:
            raise EpisodeError(
                f"{path}: step {number}, action {action}: "
                f"expected reward {wanted!r}, found {reward!r}"
            )
    if env.outcome() != episode["outcome"]:
        found = f"expected outcome {episode['outcome']}, found {env.outcome()}"
        raise EpisodeError(f"{path}: after {len(episode['actions'])} steps: {found}")
    return float(sum(episode["rewards"]))


@contextmanager
def _only_episode_errors(where: str) -> Iterator[None]:
    """Whatever a replay stumbles over says that the file cannot be replayed."""
    try:
        yield
    except Exception as error:
        raise EpisodeError(f"{where}: {type(error).__name__}: {error}") from error


def _make(path: Path, episode: dict[str, Any]) -> SearchEnv:
    with _only_episode_errors(f"{path}: cannot make {episode['id']!r}"):
        env = gymnasium.make(episode["id"], **episode["kwargs"])
    if not isinstance(env, SearchEnv):
        raise EpisodeError(
            f"{path}: id: expected a kernelwright environment, found {episode['id']!r}"
        )
    hashes = dict(env.provenance.hashes) if env.provenance else {}
    if hashes != episode["hashes"]:
        raise EpisodeError(f"{path}: hashes: expected {episode['hashes']}, found {hashes}")
    return env


def _read(path: Path) -> dict[str, Any]:
    try:
        episode = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise EpisodeError(f"{path}: expected a saved episode: {error}") from None
    if not isinstance(episode, dict):
        raise EpisodeError(f"{path}: expected a mapping, found {type(episode).__name__}")
    for name, kind in FIELDS.items():
        found = episode.get(name)
        if not isinstance(found, kind) or isinstance(found, bool):
            raise EpisodeError(f"{path}: {name}: expected {kind.__name__}, found {found!r}")
    if len(episode["actions"]) != len(episode["rewards"]):
        counts = f"{len(episode['actions'])} actions and {len(episode['rewards'])} rewards"
        raise EpisodeError(f"{path}: expected as many rewards as actions, found {counts}")
    for name, kinds in (("actions", (int,)), ("rewards", (int, float))):
        for value in episode[name]:
            if not isinstance(value, kinds) or isinstance(value, bool):
                raise EpisodeError(f"{path}: {name}: expected numbers, found {value!r}")
    if not 0 <= episode["seed"] < 2**63:
        raise EpisodeError(f"{path}: seed: expected 0 <= seed < 2^63, found {episode['seed']}")
    return episode
