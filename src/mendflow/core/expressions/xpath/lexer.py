"""The tokens of an XPath expression. Whether `*`, `and`, `or`, `div` and `mod` are operators depends on the token
before them, as the specification says; so one pass from left to right is enough."""

import re
from typing import Final, Literal, cast

import msgspec

from mendflow.core.expressions.xpath.evaluation import XPathError
from mendflow.lazy import lazy_pattern

CHARS_MAX: Final = 1 << 15
NCNAME: Final = r"[^\W\d][\w.\-\u00b7]*"
WORD: Final = lazy_pattern(
    rf"""(?P<number>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)
    |(?P<literal>"[^"]*"|'[^']*')
    |(?P<variable>\$[ \t\r\n]*{NCNAME}(?::{NCNAME})?)
    |(?P<name>{NCNAME}(?::(?!:)(?:{NCNAME}|\*))?|\*)
    |(?P<sign>//|::|\.\.|!=|<=|>=|[()\[\],@./|+\-=<>])""",
    re.VERBOSE,
)
BLANKS: Final = lazy_pattern(r"[ \t\r\n]*")
NAMED: Final = frozenset({"and", "or", "div", "mod"})
SIGNS: Final = frozenset({"/", "//", "|", "+", "-", "=", "!=", "<", "<=", ">", ">="})
BEFORE_OPERAND: Final = frozenset({"@", "::", "(", "[", ","})

TokenKind = Literal["number", "literal", "variable", "name", "sign", "operator", "end"]


class XPathToken(msgspec.Struct, frozen=True):
    kind: TokenKind
    text: str
    offset: int


def tokenize(text: str) -> list[XPathToken]:
    """All words, and one that marks the end."""
    if len(text) > CHARS_MAX:
        raise XPathError(f"an expression has at most {CHARS_MAX:,} characters")
    found: list[XPathToken] = []
    at = _after_blanks(text, 0)
    while at < len(text):
        word = WORD.match(text, at)
        if word is None:
            raise XPathError(_unknown(text[at]), at)
        assert word.lastgroup is not None
        found.append(XPathToken(_kind(word.lastgroup, word.group(), found, at), word.group(), at))
        at = _after_blanks(text, word.end())
    return [*found, XPathToken("end", "", len(text))]


def _kind(group: str, text: str, before: list[XPathToken], at: int) -> TokenKind:
    follows_operand = bool(before) and before[-1].kind != "operator" and before[-1].text not in BEFORE_OPERAND
    if group == "name" and follows_operand:
        if text != "*" and text not in NAMED:
            raise XPathError(f"`{text:.40}` stands where an operator should", at)
        return "operator"
    if group == "sign" and text in SIGNS:
        return "operator"
    return cast(TokenKind, group)


def _after_blanks(text: str, at: int) -> int:
    blanks = BLANKS.match(text, at)
    assert blanks is not None
    return blanks.end()


def _unknown(char: str) -> str:
    if char in "\"'":
        return "a text has no end; close its quotation mark"
    return f"`{char}` means nothing in XPath 1.0 here"
