"""What a model is shown: the sections ``context`` and ``retrieval`` of ``agents``, checked and
written out.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from kernelwright.agents.context.library import NoFullTextError, check_full_text
from kernelwright.configs.schema import AgentsSection, CampaignFile, ContextSection
from kernelwright.configs.tree import Document

MOST_PAGE_BYTES = 1 << 20


def retrieves_directives(file: CampaignFile) -> bool:
    """Whether questions may be given pages of directives: where candidates are schedules, of whose
    directives a prompt tells most in a line, or C, of which they are no part but loops are.
    """
    section = None if file.agents is None else file.agents.retrieval
    kinds = ("schedule", "source")
    return section is not None and section.directives and file.space.kind in kinds


def check_retrieval(
    document: Document, file: CampaignFile, folder: Path, files: dict[str, str]
) -> None:
    """Refuse what cannot be searched; the pages become files of the campaign.

    Raises:
        ConfigError: naming the key.
    """
    section = None if file.agents is None else file.agents.retrieval
    if section is None:
        return
    path = ("agents", "retrieval")
    try:
        check_full_text()
    except NoFullTextError as error:
        expected = "a Python whose SQLite has full-text search (FTS5)"
        raise document.error(path, expected, str(error)) from None
    for name in section.pages:
        place = (folder / name).resolve()
        try:
            content = place.read_bytes()
            content.decode("utf-8-sig")
        except (OSError, ValueError) as error:
            found = f"{name!r:.200} ({error})"
            raise document.error((*path, "pages"), "a text file", found) from None
        if len(content) > MOST_PAGE_BYTES:
            found = f"{name!r:.200} of {len(content)}"
            expected = f"a file of at most {MOST_PAGE_BYTES} bytes"
            raise document.error((*path, "pages"), expected, found)
        files[str(place)] = hashlib.sha256(content).hexdigest()
    for name in section.runs:
        if not (folder / name).is_dir():
            found = f"{name!r:.200}, which is none"
            raise document.error((*path, "runs"), "a folder of runs", found)
    if not (retrieves_directives(file) or section.pages or section.runs or section.cache):
        expected = "something to retrieve: pages, runs, cache or, of loops, directives"
        raise document.error(path, expected, "nothing")


def resolved_context(agents: AgentsSection, folder: Path) -> dict[str, Any]:
    """The sections with absolute paths; what says nothing is left out, so that campaigns from
    before there was such a section are the same ones.
    """
    out: dict[str, Any] = {}
    if agents.context != ContextSection():
        out["context"] = agents.context.model_dump(mode="json", exclude_none=True)
    if agents.retrieval is not None:
        section = agents.retrieval.model_dump(mode="json")
        for key in ("pages", "runs"):
            section[key] = [str((folder / name).resolve()) for name in section[key]]
        out["retrieval"] = section
    return out
