"""Saved episodes, replayed: a claim about a policy can be checked by anyone who has the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

FIELDS = {"id": str, "kwargs": dict, "seed": int, "options": dict, "actions": list, "rewards": list}


class EpisodeError(ValueError):
    """An episode that is not what its file says: the file is damaged, or the replay differs at a
    step.
    """


def validate(path: str | Path) -> float:
    """Replay a saved episode and return its total reward.

    Raises:
        EpisodeError: at the first difference, naming the step and both rewards; or if the file is
            not an episode.
    """
    episode = _read(Path(path))
    try:
        env = gymnasium.make(episode["id"], **episode["kwargs"])
    except (gymnasium.error.Error, ValueError, TypeError, KeyError) as error:
        raise EpisodeError(f"{path}: cannot make {episode['id']!r}: {error}") from None
    try:
        try:
            env.reset(seed=episode["seed"], options=episode["options"])
        except ValueError as error:
            raise EpisodeError(f"{path}: options: {error}") from None
        for number, (action, wanted) in enumerate(
            zip(episode["actions"], episode["rewards"], strict=True)
        ):
            try:
                _, reward, _, _, _ = env.step(np.int64(action))
            except gymnasium.error.Error as error:
                raise EpisodeError(f"{path}: step {number}: {error}") from None
            if reward != wanted:
                raise EpisodeError(
                    f"{path}: step {number}, action {action}: "
                    f"expected reward {wanted!r}, found {reward!r}"
                )
    finally:
        env.close()
    return float(sum(episode["rewards"]))


def _read(path: Path) -> dict[str, Any]:
    try:
        episode = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise EpisodeError(f"{path}: expected a saved episode: {error}") from None
    if not isinstance(episode, dict):
        raise EpisodeError(f"{path}: expected a mapping, found {type(episode).__name__}")
    for name, kind in FIELDS.items():
        if not isinstance(episode.get(name), kind) or isinstance(episode.get(name), bool):
            raise EpisodeError(
                f"{path}: {name}: expected {kind.__name__}, found {episode.get(name)!r}"
            )
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
