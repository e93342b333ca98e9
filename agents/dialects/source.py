"""Source as C: the whole file, only what stands in its editable regions, or edits of the parent."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Any

from kernelwright.agents.chat import Malformed
from kernelwright.agents.dialects.dialect import Edits
from kernelwright.agents.dialects.fences import answer_block
from kernelwright.agents.edit_blocks import Misfit, has_edits, read_edits
from kernelwright.agents.edits import apply_edits, regions_of
from kernelwright.env.compiler.runtime.call import C_TYPES
from kernelwright.env.spaces.ctext import code_of, may_define, shows_definition
from kernelwright.env.spaces.novelty import Forms
from kernelwright.env.spaces.source import SourceError, marker, read_regions
from kernelwright.env.types import Candidate, ExtentRange, Language, Problem, TensorSpec

HINTS = (
    "help the compiler to vectorize the innermost loops",
    "break the longest chain of dependent operations",
    "do less work: hoist what does not change, merge passes over the same data",
    "touch memory in a better order, or in blocks that stay in cache",
    "keep more values in registers",
    "rewrite it another way than anything listed",
)
MOST_BRIEF_LINES = 4
MOST_REASON = 600
C_MARKS = ("c", "cpp", "c++", "h")
EDIT_MARKS = ("edit", "diff")


class Source:
    """The dialect of a space of C files."""

    name = "source"
    fence = "c"
    hints = HINTS

    def __init__(self, space: Any, problem: Problem, *, edits: Edits = "whole") -> None:
        self._space, self._problem, self._edits = space, problem, edits
        self._regions = tuple(space.regions)
        self._forms = Forms(space, problem)
        # Where the entry itself is in a region, regions alone define it, too.
        self._inside = not shows_definition(self._outside(space.text), problem.name)

    def facts(self) -> Mapping[str, Any]:
        """The prototype, the macros of fixed extents, which regions may change, and how an answer
        is given.
        """
        return {
            "prototype": prototype(self._problem),
            "macros": _macros(self._problem),
            "regions": tuple(self._space.regions),
            "edits": self._edits,
        }

    def start(self) -> Candidate | None:
        """The file that the campaign names."""
        return Candidate(Language.SOURCE, self._space.text)

    def show(self, candidate: Candidate) -> str:
        """The whole file."""
        return str(candidate.payload)

    def brief(self, candidate: Candidate) -> str:
        """The key, and the first lines that are new, or gone where none is new."""
        before, after = _lines(str(self._space.text)), _lines(str(candidate.payload))
        changed = [
            line
            for line in difflib.unified_diff(before, after, lineterm="", n=0)
            if line[0] in "+-" and re.search(r"\w", line)
        ]
        changed.sort(key=lambda line: line[0] == "-")
        shown = [f"{line[0]} {line[1:]:.100}" for line in changed[:MOST_BRIEF_LINES]]
        more = len(changed) - len(shown)
        tail = [f"… {more} more"] if more > 0 else []
        return " | ".join([candidate.key[:8], *shown, *tail]).replace("`", "'")

    def form(self, candidate: Candidate) -> str:
        """The tokens of the C, locals without names."""
        return self._forms.of(candidate)

    def parse(self, reply: str, parent: Candidate | None = None) -> Candidate | Malformed:
        """The file in the reply's block, its regions put into the start's file, or the parent after
        its edits.

        A file is told from regions by what stands outside their markers: it defines the kernel.
        """
        marks = {"whole": C_MARKS, "search_replace": EDIT_MARKS + C_MARKS}
        text = answer_block(reply, marks.get(self._edits, C_MARKS + EDIT_MARKS))
        if isinstance(text, Malformed):
            return text
        if self._edits == "search_replace" or (self._edits == "either" and has_edits(text)):
            return self._edited(text, parent or self._space.default)
        if not text.strip():
            return Malformed("wrong_schema", "expected C, found an empty block")
        if not self._regions or self._is_whole(text):
            return self._whole(text)
        return self._spliced(text)

    def _edited(self, block: str, parent: Candidate) -> Candidate | Malformed:
        """The parent after the edits of a block; none of them where one does not fit."""
        edits = read_edits(block)
        if isinstance(edits, Misfit):
            return Malformed("unparsable", edits.reason[:MOST_REASON])
        text = str(parent.payload)
        regions = regions_of(text, self._regions) if self._regions else None
        found = apply_edits(text, edits, regions)
        if isinstance(found, Misfit):
            return Malformed("wrong_schema", f"{found.kind}: {found.reason}"[:MOST_REASON])
        return self._whole(found)

    def _is_whole(self, text: str) -> bool:
        outside = self._outside(text)
        if shows_definition(outside, self._problem.name):
            return True
        marked = outside.count("\n") < text.count("\n")
        return self._inside and marked and bool(code_of(outside).strip())

    def _outside(self, text: str) -> str:
        """What of a text is in no region, as far as its markers can be followed."""
        lines, inside = [], False
        for line in text.split("\n"):
            kind, name = marker(line) or ("", "")
            if name in self._regions:
                inside = kind == "region"
            elif not inside:
                lines.append(line)
        return "\n".join(lines)

    def _spliced(self, text: str) -> Candidate | Malformed:
        try:
            outside, found = read_regions(text, self._regions)
        except SourceError as error:
            return Malformed("wrong_schema", str(error)[:200])
        marked = [mark[1] for _, line in outside if (mark := marker(line))]
        strange = [name for name in marked if name not in self._regions]
        if not marked and len(self._regions) == 1:
            found = [(self._regions[0], text)]
        if strange or not found:
            seen = ", ".join(dict.fromkeys(strange)) or "none"
            wanted = f"the function {self._problem.name}, or regions of {', '.join(self._regions)}"
            return Malformed("wrong_schema", f"expected {wanted}, found {seen:.80}")
        try:
            candidate: Candidate = self._space.splice(dict(found))
        except ValueError as error:
            return Malformed("wrong_schema", str(error)[:200])
        return candidate

    def _whole(self, text: str) -> Candidate | Malformed:
        if not may_define(text, self._problem.name):
            name = self._problem.name
            return Malformed("wrong_schema", f"expected a definition of {name}, found none")
        try:
            return Candidate(Language.SOURCE, text)
        except ValueError as error:
            return Malformed("unparsable", str(error)[:200])

    def schema(self) -> Mapping[str, Any] | None:
        """None: C is no JSON."""
        return None


def prototype(problem: Problem) -> str:
    """The kernel's declaration: inputs, outputs, then extents, in declared order."""

    def tensor(spec: TensorSpec) -> str:
        const = "const " if spec.role == "input" else ""
        kind = C_TYPES.get(spec.dtype, spec.dtype)
        return f"{const}{kind} *restrict {spec.name}"

    ordered = [t for role in ("input", "output") for t in problem.tensors if t.role == role]
    names = [name for name, _ in problem.workloads[0].extents]
    parts = [tensor(spec) for spec in ordered] + [f"int64_t {name}" for name in names]
    return f"void {problem.name}({', '.join(parts)})"


def _macros(problem: Problem) -> list[str]:
    fixed = [(n, e) for n, e in problem.workloads[0].extents if not isinstance(e, ExtentRange)]
    return [f"KW_{name.upper()} {extent}" for name, extent in fixed]


def _lines(text: str) -> list[str]:
    """Lines that say something, without their indentation."""
    return [stripped for line in text.splitlines() if (stripped := line.strip())]
