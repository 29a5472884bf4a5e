"""Finds the names that an expression reads, from its text alone.

One pass over the tokens of CEL: a name counts when it is not a member, not a function, not inside a string, and not the
variable of a macro around it. The plain members that follow are its path, so that only that part of the data is passed.
`jobs` and `links` are families: their next member is part of the name, may contain hyphens (a family is never
subtracted from), and must be literal."""

import re
from functools import lru_cache
from typing import Final, NamedTuple

from mendflow.core.expressions.contract import ExpressionError
from mendflow.lazy import lazy_pattern

REWRITE: Final = "rewrite"
ENDS: Final = "JOBS"
"""The family of how jobs ended, a word each: what `failed(jobs.a)`, `skipped(jobs.a)` and `has(jobs.a)` ask for. It is
written with as many letters as `jobs`, so that places in the text stay what they are."""

END_FUNCTIONS: Final = {"failed": "failed", "skipped": "skipped", "has": "did"}
"""Functions of how a job ended, and what each is called in CEL."""

FAMILIES: Final = frozenset({"jobs", "links", ENDS})
MACROS: Final = frozenset({"all", "exists", "exists_one", "map", "filter", "sortBy"})
NAMESPACES: Final = frozenset({"math", "strings"})
WORDS: Final = frozenset({"true", "false", "null", "in"})
TYPES: Final = frozenset(
    {"int", "uint", "double", "bool", "string", "bytes", "list", "map", "null_type", "type", "dyn"}
)
RESERVED_WORDS: Final = frozenset(
    {"as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop", "package"}
    | {"namespace", "return", "var", "void", "while"}
)
RESERVED: Final = WORDS | TYPES | NAMESPACES | FAMILIES | RESERVED_WORDS
"""Names that a variable cannot have."""

TOKEN: Final = lazy_pattern(
    r"""(?P<space>\s+|//[^\n]*)
      | (?P<string>[rRbB]{0,2}(?:\"{3}(?:\\.|[^\\])*?\"{3}|'{3}(?:\\.|[^\\])*?'{3}
                                |"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'))
      | (?P<number>0[xX][0-9a-fA-F]+[uU]?|(?:\d+\.\d+|\d+|\.\d+)(?:[eE][+-]?\d+)?[uU]?)
      | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<quoted>`[^`\n]+`)
      | (?P<mark>.)""",
    re.VERBOSE | re.DOTALL,
)
FAMILY_MEMBER: Final = lazy_pattern(r"[A-Za-z_][A-Za-z0-9_-]*(?<!-)")
PLAIN_PATH: Final = lazy_pattern(
    r"\s*(jobs\.[A-Za-z_][A-Za-z0-9_-]*(?<!-)|[A-Za-z_][A-Za-z0-9_]*)((?:\.[A-Za-z_][A-Za-z0-9_]*)*)\s*"
)
KEPT_MAX: Final = 2_000
KEPT_CHARS_MAX: Final = 500
"""Of how many texts what was found is kept, and how long they may be. That is a few megabytes for texts as people write
them; 2,000 texts that name something in every third character would take some 60."""

PLAIN_STRING: Final = lazy_pattern(r"""(["'])([^\\"']*)\1""")


class CelToken(NamedTuple):
    kind: str
    text: str
    start: int
    end: int


class Reference(NamedTuple):
    """A name, and the members that follow it in the text: `jobs.a` with (`outputs`, `n`)."""

    name: str
    members: tuple[str, ...]
    offset: int


class Scan(NamedTuple):
    """`text` is the expression with hyphenated members of families in backquotes, as CEL wants them."""

    text: str
    references: tuple[Reference, ...]
    inserted: tuple[int, ...]

    def original_offset(self, offset: int) -> int:
        """Where a place in `text` was before the backquotes came in."""
        return offset - sum(1 for place in self.inserted if place < offset)


def plain_reference(text: str) -> Reference | None:
    """The reference that the whole text is, if it is no more than a path such as `jobs.a.outputs.n`. Most are, and
    every job of a long chain has one of its own: this is much faster than a scan."""
    found = PLAIN_PATH.fullmatch(text)
    if found is None or found.group(1) in RESERVED:
        return None
    members = found.group(2)
    return Reference(found.group(1), tuple(members[1:].split(".")) if members else (), found.start(1))


def scan(text: str) -> Scan:
    """What is kept of short texts, which are scanned again whenever a case is begun; of a long one it is found anew."""
    return _kept_scan(text) if len(text) <= KEPT_CHARS_MAX else _scan(text)


def _scan(text: str) -> Scan:
    text, inserted = quote_family_members(text)
    text = with_ends(with_own_replace(text))
    tokens = [token for token in tokenize(text) if token.kind != "space"]
    references = []
    calls: list[str | None] = []  # for each open bracket the variable that a macro binds inside it
    for place, token in enumerate(tokens):
        if token.kind == "mark":
            if token.text in "([{":
                calls.append(bound_variable(tokens, place))
            elif token.text in ")]}" and calls:
                calls.pop()
        elif token.kind == "name" and is_root(tokens, place) and token.text not in calls:
            references.append(reference_at(tokens, place))
    return Scan(text, tuple(references), inserted)


_kept_scan = lru_cache(maxsize=KEPT_MAX)(_scan)


def tokenize(text: str) -> list[CelToken]:
    return [CelToken(str(m.lastgroup), m.group(), m.start(), m.end()) for m in TOKEN.finditer(text)]


def quote_family_members(text: str) -> tuple[str, tuple[int, ...]]:
    """Write `jobs.my-job` and `jobs.in` as CEL has them, with the member in backquotes."""
    if not any(family in text for family in FAMILIES):
        return text, ()
    pieces: list[str] = []
    inserted: list[int] = []
    end = 0
    tokens = tokenize(text)
    for before, token, dot in zip([None, *tokens], tokens, tokens[1:], strict=False):
        if token.text not in FAMILIES or dot.text != "." or (before is not None and before.text == "."):
            continue
        member = FAMILY_MEMBER.match(text, dot.end)
        if member and ("-" in member.group() or member.group() in WORDS):
            pieces.append(text[end : dot.end] + f"`{member.group()}`")
            inserted += [dot.end + len(inserted), member.end() + len(inserted) + 1]
            end = member.end()
    return "".join(pieces) + text[end:], tuple(inserted)


def with_own_replace(text: str) -> str:
    """Call our own `replace`, which makes no text of any length. Its name is as long, so that places stay what they
    are."""
    if "replace" not in text:
        return text
    parts, before = [], ""
    tokens = tokenize(text)
    for token, after in zip(tokens, [*tokens[1:], CelToken("mark", "", 0, 0)], strict=True):
        ours = token.text == "replace" and before == "." and after.text == "("
        parts.append(REWRITE if ours else token.text)
        before = token.text if token.kind != "space" else before
    return "".join(parts)


def with_ends(text: str) -> str:
    """Ask `failed(jobs.a)` and the like of how the job ended, and not of what it left, which may be nothing."""
    if not any(f"{name}(" in text for name in END_FUNCTIONS) and "(" not in text:
        return text
    tokens = tokenize(text)
    parts = [token.text for token in tokens]
    solid = [place for place, token in enumerate(tokens) if token.kind != "space"]
    for at, place in enumerate(solid):
        name = tokens[place].text
        if name not in END_FUNCTIONS or (at and tokens[solid[at - 1]].text == "."):
            continue
        following = [tokens[each] for each in solid[at + 1 : at + 6]]
        if not following or following[0].text != "(":
            continue
        asks_job = len(following) == 5 and following[1].text in ("jobs", ENDS) and following[2].text == "."
        if asks_job and following[4].text == ")":
            parts[place] = END_FUNCTIONS[name]
            parts[solid[at + 2]] = ENDS
        elif name != "has":
            raise ExpressionError(f"`{name}` asks for a job: {name}(jobs.NAME)", tokens[place].start)
    return "".join(parts)


def is_root(tokens: list[CelToken], place: int) -> bool:
    """A name that stands for a value of its own: no member, no function, no word of the language."""
    text = tokens[place].text
    after = tokens[place + 1].text if place + 1 < len(tokens) else ""
    if text in WORDS or text in TYPES or after == "(" or (text in NAMESPACES and after == "."):
        return False
    if place == 0 or tokens[place - 1].text != ".":
        return True
    # A dot with nothing before it that could have members marks a root: `.a`.
    return place == 1 or not (tokens[place - 2].kind != "mark" or tokens[place - 2].text in ")]}")


def bound_variable(tokens: list[CelToken], place: int) -> str | None:
    """The variable of a macro whose bracket opens here: `x` in `list.map(x, ...)`."""
    if place < 2 or place + 2 >= len(tokens) or tokens[place].text != "(":
        return None
    is_macro = tokens[place - 1].text in MACROS and tokens[place - 2].text == "."
    return tokens[place + 1].text if is_macro and tokens[place + 2].text == "," else None


def reference_at(tokens: list[CelToken], place: int) -> Reference:
    start = tokens[place]
    members, at = [], place + 1
    while at + 1 < len(tokens) and (member := member_at(tokens, at)) is not None:
        members.append(member)
        at += 2 if tokens[at].text == "." else 3
    if start.text not in FAMILIES:
        return Reference(start.text, tuple(members), start.start)
    if not members:
        raise ExpressionError(
            f"`{start.text}` needs a name that is written out, as {start.text}.NAME or {start.text}['NAME']",
            start.start,
        )
    return Reference(f"{start.text}.{members[0]}", tuple(members[1:]), start.start)


def member_at(tokens: list[CelToken], at: int) -> str | None:
    """The member that follows as `.name`, ``.`name` `` or `['name']`; None where the path stops being plain."""
    after = tokens[at + 2].text if at + 2 < len(tokens) else ""
    following = tokens[at + 1]
    if tokens[at].text == "." and following.kind in ("name", "quoted") and after != "(":
        return following.text.strip("`")
    if tokens[at].text == "[" and following.kind == "string" and after == "]":
        plain = PLAIN_STRING.fullmatch(following.text)
        return plain.group(2) if plain else None
    return None
