"""The statements and declarations of a C function, read for where names are declared and used.

Less than a parser: expressions are read for their names and brackets alone. Whatever is not in this
grammar (assembly, nested functions, statements in expressions, tags with bodies, function pointers)
raises a `GiveUpError`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

from kernelwright.env.spaces.cscopes import QUALIFIERS, TYPES, GiveUpError, Scopes
from kernelwright.env.spaces.ctokens import NAME, Token

_ATTRIBUTES = frozenset({"__attribute__", "__attribute", "_Alignas", "alignas"})
_TYPEOF = frozenset({"typeof", "__typeof__", "__typeof"})
_TAGGED = frozenset({"struct", "union", "enum"})
# Words that begin a statement: in an expression they come from a macro that hides one.
_BEGINNINGS = "break case continue default do else for goto if return switch while typedef extern"
_STATEMENTS = frozenset(_BEGINNINGS.split())
_ASSEMBLY = frozenset({"asm", "__asm", "__asm__", "__label__"})
MEMBERS = frozenset({"offsetof", "__builtin_offsetof"})
_PAIRS = {"(": ")", "[": "]", "{": "}"}
_END = Token("end", "")
# Statements and brackets in each other. Python's own limit depends on who calls.
MOST_DEPTH = 64


class Reader:
    """Reads a function's tokens from the bracket before its parameters to that behind its body."""

    def __init__(self, tokens: Sequence[Token], scopes: Scopes) -> None:
        self._tokens, self._scopes, self._at = tokens, scopes, 0
        self._depth = 0

    def function(self, body: int) -> None:
        """The parameters, then the body, which begins at a place.

        Raises:
            GiveUpError: if it is not read for certain.
        """
        self._expect("(")
        while not self._is(")"):
            if self._is("..."):
                self._at += 1
            else:
                self._specifiers()
                if not self._is(",", ")"):
                    self._declarator()
            if self._is(","):
                self._at += 1
        self._expect(")")
        if self._at != body:
            self._stop()
        # In one scope with the parameters.
        self._statements()
        if self._at != len(self._tokens):
            self._stop()

    # Tokens

    def _token(self, ahead: int = 0) -> Token:
        place = self._at + ahead
        return self._tokens[place] if place < len(self._tokens) else _END

    def _is(self, *texts: str) -> bool:
        token = self._token()
        return token.kind in ("mark", "name") and token.text in texts

    def _expect(self, text: str) -> None:
        if not self._is(text):
            self._stop()
        self._at += 1

    def _stop(self) -> NoReturn:
        raise GiveUpError(f"{self._token().text!r} at token {self._at}")

    @contextmanager
    def _deeper(self) -> Iterator[None]:
        """One level further in."""
        self._depth += 1
        if self._depth > MOST_DEPTH:
            self._stop()
        yield
        self._depth -= 1

    # Statements

    def _block(self) -> None:
        with self._scopes.inner():
            self._statements()

    def _statements(self) -> None:
        self._expect("{")
        while not self._is("}"):
            self._statement()
        self._expect("}")

    def _statement(self) -> None:
        with self._deeper():
            self._read_statement()

    def _read_statement(self) -> None:
        while self._token().kind == "directive" or self._is("_Pragma"):
            self._at += 1
            if self._is("("):
                self._group()
        token = self._token()
        if token.kind == "end":
            self._stop()
        if self._is("}"):
            return  # a directive or a label was the last
        if self._is("{"):
            self._block()
        elif token.kind == "name" and token.text in _CONTROL:
            _CONTROL[token.text](self)
        elif token.kind == "name" and self._token(1).text == ":":
            self._scopes.kept.add(token.text)
            self._at += 2
            self._statement()
        elif self._declares():
            self._declaration()
        else:
            self._expression(";")
            self._expect(";")

    def _for(self) -> None:
        self._at += 1
        self._expect("(")
        with self._scopes.inner():
            if self._declares():
                self._declaration()
            else:
                self._expression(";")
                self._expect(";")
            self._expression(";")
            self._expect(";")
            self._expression(")")
            self._expect(")")
            self._statement()

    def _conditional(self) -> None:
        self._at += 1
        self._expect("(")
        self._expression(")")
        self._expect(")")
        self._body()

    def _if(self) -> None:
        self._conditional()
        if self._is("else"):
            self._at += 1
            self._body()

    def _do(self) -> None:
        self._at += 1
        self._body()
        if not self._is("while"):
            self._stop()
        self._at += 1
        self._expect("(")
        self._expression(")")
        self._expect(")")
        self._expect(";")

    def _body(self) -> None:
        with self._scopes.inner():
            self._statement()

    def _case(self) -> None:
        self._at += 1
        choices = 0
        while choices or not self._is(":"):
            if self._is("?"):
                choices += 1
            elif self._is(":"):
                choices -= 1
            elif self._is(";", "{", "}") or self._token().kind in ("end", "directive"):
                self._stop()
            self._item()
        self._at += 1
        self._statement()

    def _jump(self) -> None:
        if self._is("goto") and self._token(1).kind == "name":
            self._scopes.kept.add(self._token(1).text)
            self._at += 2
        else:
            self._at += 1
            self._expression(";")
        self._expect(";")

    def _hidden(self) -> None:
        """A declaration of what is not a local: all its names keep their letters."""
        while not self._is(";"):
            if self._is("{") or self._token().kind in ("end", "directive"):
                self._stop()
            if self._token().kind == "name":
                self._scopes.kept.add(self._token().text)
            self._at += 1
        self._at += 1

    # Declarations

    def _declares(self) -> bool:
        """Whether a declaration begins here."""
        token = self._token()
        if token.kind != "name":
            return False
        known = token.text in TYPES | QUALIFIERS | _TAGGED | _ATTRIBUTES | _TYPEOF
        return known or self._scopes.is_type(token.text)

    def _declaration(self) -> None:
        self._specifiers()
        while not self._is(";"):
            self._declarator()
            if self._is("="):
                self._at += 1
                self._expression(",", ";")
            if self._is(","):
                self._at += 1
            elif not self._is(";"):
                self._stop()
        self._at += 1

    def _specifiers(self) -> None:
        typed = False
        while True:
            token = self._token()
            if token.kind != "name":
                break
            if token.text in TYPES | QUALIFIERS:
                typed |= token.text in TYPES
                self._at += 1
            elif token.text in _ATTRIBUTES:
                self._attribute()
            elif token.text in _TAGGED and self._token(1).kind == "name":
                self._scopes.kept.add(self._token(1).text)
                self._at += 2
                typed = True
            elif token.text in _TYPEOF:
                self._at += 1
                self._group()
                typed = True
            elif not typed and self._scopes.is_type(token.text):
                self._at += 1
                typed = True
            else:
                break
        if not typed:
            self._stop()

    def _declarator(self) -> None:
        """Stars, a name, which may be in brackets, and what is in brackets behind it."""
        while self._is("*") or self._token().text in QUALIFIERS | _ATTRIBUTES:
            if self._token().text in _ATTRIBUTES:
                self._attribute()
            else:
                self._at += 1
        arrays = self._is("(") and self._token(1).text == "*"
        self._at += 2 if arrays else 0
        place, name = self._at, self._token()
        if name.kind != "name":
            self._stop()
        self._at += 1
        if arrays:
            self._expect(")")
        while self._is("["):
            self._group()
        while self._token().text in _ATTRIBUTES:
            self._attribute()
        if not self._is("=", ",", ";", ")"):
            self._stop()
        # Only now: what stands in its own brackets is not it.
        self._scopes.declare(name.text, place)

    def _attribute(self) -> None:
        """An attribute, whose words are its own."""
        self._at += 1
        if not self._is("("):
            self._stop()
        before, self._at = self._at, self._behind(self._at)
        for token in self._tokens[before : self._at]:
            self._scopes.kept |= set(NAME.findall(token.text))

    # Expressions

    def _expression(self, *ends: str) -> None:
        """Items up to one of some marks."""
        while not self._is(*ends):
            self._item()

    def _item(self) -> None:
        """A token of an expression, or all that stands in brackets."""
        token = self._token()
        if token.kind in ("end", "directive") or token.text in (")", "]", "}", ";"):
            self._stop()
        if token.kind == "mark" and token.text in _PAIRS:
            self._group()
        elif token.kind != "name":
            self._at += 1
            if token.text in (".", "->") and self._token().kind == "name":
                self._at += 1  # a member
        elif token.text in _STATEMENTS | _ASSEMBLY:
            self._stop()
        elif token.text in _TAGGED:
            if self._token(1).kind != "name" or self._token(2).text == "{":
                self._stop()
            self._scopes.kept.add(self._token(1).text)
            self._at += 2
        elif token.text in _ATTRIBUTES:
            self._attribute()
        elif self._token(1).text == ":" and self._token(-1).text in ("{", ","):
            self._scopes.kept.add(token.text)  # perhaps a member, in an initialiser of old
            self._at += 1
        else:
            self._scopes.use(token.text, self._at)
            self._at += 1
            if self._is("("):
                self._called(token.text)

    def _called(self, name: str) -> None:
        """A function, perhaps a macro; what `MEMBERS` are given may be a member."""
        self._scopes.kept.add(name)
        if name in MEMBERS:
            for token in self._tokens[self._at : self._behind(self._at)]:
                self._scopes.kept |= set(NAME.findall(token.text))

    def _group(self) -> None:
        """What stands in brackets; a block in round ones is a statement in an expression."""
        opened = self._token().text
        if opened not in _PAIRS or (opened != "{" and self._token(1).text == "{"):
            self._stop()
        if opened == "[" and self._token(1).text == "[":
            self._stop()
        self._at += 1
        with self._deeper():
            self._expression(_PAIRS[opened])
        self._at += 1

    def _behind(self, opened: int) -> int:
        """Where the text goes on behind a bracket that closes."""
        depth, place = 0, opened
        while place == opened or depth:
            if place == len(self._tokens):
                self._stop()
            depth += (self._tokens[place].text == "(") - (self._tokens[place].text == ")")
            place += 1
        return place


_CONTROL: dict[str, Callable[[Reader], None]] = {
    "for": Reader._for,
    "while": Reader._conditional,
    "switch": Reader._conditional,
    "if": Reader._if,
    "do": Reader._do,
    "case": Reader._case,
    "default": Reader._case,
    "return": Reader._jump,
    "goto": Reader._jump,
    "break": Reader._jump,
    "continue": Reader._jump,
    "typedef": Reader._hidden,
    "extern": Reader._hidden,
}
