"""Reading C without understanding it: what of a text is code, and whether it defines a function.

Only a compiler knows. What is said here is said in doubt's favour, and in time linear in the text.
"""

from __future__ import annotations

import re

# Numbers, whose apostrophes open nothing, then comments and literals, so that what stands in them
# is not taken for code.
_SILENT = re.compile(
    r"""(?P<number>(?<!\w)\.?\d(?:[eEpP][+-]|'(?=\w)|[\w.])*)"""
    r"""|//[^\n]*|/\*.*?(?:\*/|\Z)|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?""",
    re.DOTALL,
)
_CONTINUED = re.compile(r"\\[ \t]*\r?\n")
# What comes after the parameters of a definition: its body (also as a digraph), or a word that is
# an attribute, a macro or a directive that stands for it.
_BODY = re.compile(r"\s*(?:[{\w#]|<%|\Z)")
# Where a function may come from that the text does not show: another file, a pasted name, an alias.
_ELSEWHERE = re.compile(r"^[ \t]*#[ \t]*include\b(?![ \t]*<)|##|\balias\b", re.MULTILINE)
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)(.*)", re.MULTILINE)


def code_of(text: str) -> str:
    """A C text with a space for every comment and literal."""
    return _SILENT.sub(lambda found: found["number"] or " ", text)


def shows_definition(text: str, function: str) -> bool:
    """Whether a C text has the name of a function, parameters, and then what may be a body."""
    return _shows(_joined(text), function)


def may_define(text: str, function: str) -> bool:
    """Whether a C text may define a function; False only where it is clear that it does not.

    What a macro or another file may hide is the compiler's to say.
    """
    code = _joined(text)
    if _shows(code, function):
        return True
    name = re.compile(rf"\b{re.escape(function)}\b")
    macros = _MACRO.findall(code)
    if _ELSEWHERE.search(code) or any(name.search(body) for _, body in macros):
        return True
    if not macros:
        return False
    call = re.compile(rf"\b(?:{'|'.join(macro for macro, _ in macros)})\s*\(")
    calls = ((piece, call.search(piece)) for piece in re.split("[;{}]", code))
    return any(found and name.search(piece, found.end()) for piece, found in calls)


def _joined(text: str) -> str:
    """The code of a text whose continued lines are one."""
    return code_of(_CONTINUED.sub("", text))


def _shows(code: str, function: str) -> bool:
    behind = _behind_parentheses(code)
    heads = re.finditer(rf"\b{re.escape(function)}\b[\s)]*\(", code)
    return any(_BODY.match(code, behind.get(head.end() - 1, len(code))) for head in heads)


def _behind_parentheses(code: str) -> dict[int, int]:
    """For every parenthesis that is closed, where the text goes on behind."""
    opened, behind = list[int](), dict[int, int]()
    for found in re.finditer("[()]", code):
        if found[0] == "(":
            opened.append(found.start())
        elif opened:
            behind[opened.pop()] = found.end()
    return behind
