"""Conditions of YAWL's rules, and the same in CEL.

Operators are `* /`, then `+ -`, then `< <= > >=`, then `= !=`, then `& |`, left-associative; numbers are floats. A `!`
at the beginning negates everything up to the end of its brackets. A word is a name of the item's or the case's data, if
there is such data, and else a text: the cornerstones in the file show which, and otherwise its side of the comparison.
A leading `{` or `/` means XQuery, which is not translated.

Of its functions, `max` and `min` have counterparts, and `today` is the day as a text. What a case costs, a cost service
says there; here it is `sources.cost`, by the expression as it was written."""

import json
import re
from collections.abc import Collection
from typing import Final

from mendflow.core.expressions.cel_parser import (
    IDENTIFIER,
    Constant,
    MemberPath,
    Operator,
    Tree,
    parse,
    path_of,
    paths_in,
)
from mendflow.core.expressions.scanner import RESERVED_WORDS, WORDS

TOKEN: Final = re.compile(
    r"""\s*(?:(?P<string>"[^"]*")|(?P<number>\d+(?:\.\d*)?|\.\d+)|(?P<word>[^\W\d]\w*)|(?P<mark><=|>=|!=|[-*/+<>=&|!(),]))"""
)
COST: Final = re.compile(r"\s*(?:cost|cheapestVariant|dearestVariant)\s*\(")
VERBATIM: Final = "cel"
"""An operator whose only part is text in CEL."""

TODAY: Final = "string(timestamp(int(now / 1000))).substring(0, 10)"
GREATER: Final = {"max": "math.greatest", "min": "math.least"}
OPERATOR_WORDS: Final = {"AND": "&", "OR": "|"}
LEVELS: Final = (("&", "|"), ("=", "!="), ("<", "<=", ">", ">="), ("+", "-"), ("*", "/"))
IN_CEL: Final = {"&": "&&", "|": "||", "=": "=="}
IN_YAWL: Final = {ours: theirs for theirs, ours in IN_CEL.items()}
COMPARISONS: Final = frozenset({"==", "!=", "<", "<=", ">", ">="})
STRENGTH: Final = {
    **dict.fromkeys(("||",), 1),
    **dict.fromkeys(("&&",), 2),
    **dict.fromkeys(COMPARISONS, 3),
    **dict.fromkeys(("+", "-"), 4),
    **dict.fromkeys(("*", "/"), 5),
}
OWN_ROOTS: Final = frozenset({"trigger"})
"""Names that YAWL has among the data, and we by themselves."""


class Untranslatable(Exception):
    """Why a condition has no counterpart."""


class UntypedWord:
    """A name or a text: decided when it is known what stands beside it."""

    def __init__(self, text: str) -> None:
        self.text = text


ConditionPart = Tree | UntypedWord


def to_cel(text: str, names: Collection[str] = ()) -> str:
    """A condition in CEL. `names` are known to be data."""
    stripped = text.strip()
    if not stripped:
        raise Untranslatable("it is empty")
    if stripped.startswith(("{", "/")):
        raise Untranslatable("it is XQuery")
    parser = YawlConditionParser(tokens_of(stripped), frozenset(names))
    tree = parser.valued(parser.expression())
    if parser.at < len(parser.tokens):
        raise Untranslatable(f"`{parser.tokens[parser.at][1]}` is not expected there")
    return in_cel(tree)


def tokens_of(text: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    at = 0
    while text[at:].strip():
        if COST.match(text, at):
            end = end_of_brackets(text, at)
            found.append(("cost", " ".join(text[at:end].split())))
            at = end
            continue
        token = TOKEN.match(text, at)
        if token is None or token.lastgroup is None:
            raise Untranslatable(f"`{text[at:].strip()[:20]}` means nothing there")
        written = token.group(token.lastgroup)
        found.append(
            ("mark", OPERATOR_WORDS[written.upper()])
            if written.upper() in OPERATOR_WORDS
            else (token.lastgroup, written)
        )
        at = token.end()
    if len(found) > 400:
        raise Untranslatable("it is too long")
    return found


def end_of_brackets(text: str, start: int) -> int:
    """Where the brackets are closed that open after this place."""
    depth = 0
    for at in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if text[at] == ")" and depth == 0:
            return at + 1
    raise Untranslatable("a bracket is not closed")


class YawlConditionParser:
    def __init__(self, tokens: list[tuple[str, str]], names: frozenset[str]) -> None:
        self.tokens = tokens
        self.names = names
        self.at = 0
        self.brackets = 0

    def is_mark(self, *texts: str) -> bool:
        return self.at < len(self.tokens) and self.tokens[self.at][0] == "mark" and self.tokens[self.at][1] in texts

    def expression(self) -> ConditionPart:
        """All up to the end of the brackets; a `!` before it negates all of it."""
        if self.is_mark("!"):
            self.at += 1
            return Operator("!", (self.valued(self.expression()),))
        return self.level(0)

    def level(self, level: int) -> ConditionPart:
        if level == len(LEVELS):
            return self.operand()
        left = self.level(level + 1)
        while self.is_mark(*LEVELS[level]):
            do = IN_CEL.get(self.tokens[self.at][1], self.tokens[self.at][1])
            self.at += 1
            right = self.level(level + 1)
            left = Operator(do, (self.valued(left), self.beside(left, do, right)))
        return left

    def beside(self, left: ConditionPart, do: str, right: ConditionPart) -> Tree:
        """A word that something is to be equal to, and of which nothing is known, is a text. Texts have no order."""
        is_text = isinstance(right, UntypedWord) and do in ("==", "!=") and right.text not in self.names | OWN_ROOTS
        if is_text and isinstance(right, UntypedWord) and right.text.lower() not in ("true", "false"):
            return Constant(right.text)
        return self.valued(right)

    def valued(self, part: ConditionPart) -> Tree:
        if not isinstance(part, UntypedWord):
            return part
        if part.text.lower() in ("true", "false"):
            return Constant(part.text.lower() == "true")
        if part.text in OWN_ROOTS:
            return path_of(part.text, ())
        return path_of("data", (part.text,))

    def operand(self) -> ConditionPart:
        if self.at >= len(self.tokens):
            raise Untranslatable("it ends too early")
        kind, text = self.tokens[self.at]
        self.at += 1
        match kind, text:
            case "string", _:
                return Constant(text[1:-1])
            case "number", _:
                return Constant(float(text) if "." in text else int(text))
            case "word", _:
                return self.word(text)
            case "cost", _:
                return path_of("sources", ("cost", text))
            case "mark", "(":
                return self.bracket()
            case "mark", "-":
                return Operator("negative", (self.valued(self.operand()),))
            case "mark", "!":
                return Operator("!", (self.valued(self.operand()),))
        raise Untranslatable(f"`{text}` is not expected there")

    def bracket(self) -> ConditionPart:
        self.brackets += 1
        if self.brackets > 20:
            raise Untranslatable("it has too many brackets in each other")
        part = self.expression()
        if not self.is_mark(")"):
            raise Untranslatable("a bracket is not closed")
        self.at += 1
        self.brackets -= 1
        return part

    def word(self, text: str) -> ConditionPart:
        if not self.is_mark("("):
            return UntypedWord(text)
        if text.lower() in GREATER:
            return self.greater(GREATER[text.lower()])
        end = next((at for at in range(self.at, len(self.tokens)) if self.tokens[at] == ("mark", ")")), -1)
        arguments = [token[1] for token in self.tokens[self.at + 1 : end]]
        found = FUNCTIONS.get((text.lower(), *(each.lower() for each in arguments))) if end > 0 else None
        if found is None:
            raise Untranslatable(f"there is no counterpart of the function `{text}`")
        self.at = end + 1
        return found

    def greater(self, function: str) -> ConditionPart:
        """The greater, or the lesser, of two."""
        self.at += 1
        first = self.valued(self.expression())
        if not self.is_mark(","):
            raise Untranslatable("`max` and `min` take two values")
        self.at += 1
        second = self.valued(self.expression())
        if not self.is_mark(")"):
            raise Untranslatable("`max` and `min` take two values")
        self.at += 1
        return Operator(function, (first, second))


def _function(text: str) -> Tree:
    tree = parse(text)
    assert tree is not None
    return tree


FUNCTIONS: Final[dict[tuple[str, ...], Tree]] = {
    ("hastimerexpired", "this"): _function("timed_out == item.id"),
    ("today",): Operator(VERBATIM, (Constant(TODAY),)),
    ("isnotcompleted", "this"): _function('!(item.status in ["completed", "failed"])'),
}


def in_cel(tree: Tree, outer_strength: int = 0) -> str:
    """A tree as CEL. Whole numbers divide as fractions do in YAWL."""
    match tree:
        case Constant(value):
            return json.dumps(value, ensure_ascii=False)
        case MemberPath():
            return cel_path(tree)
        case Operator("!", (inner,)):
            return f"!({in_cel(inner)})"
        case Operator("negative", (inner,)):
            return f"-({in_cel(inner)})" if not isinstance(inner, Constant) else f"-{in_cel(inner)}"
        case Operator("in", (inner, among)):
            return f"{in_cel(inner, 4)} in {in_cel(among)}"
        case Operator("cel", (Constant(str() as text),)):
            return text
        case Operator("math.greatest" | "math.least" as function, (first, second)):
            return f"{function}({in_cel(first)}, {in_cel(second)})"
        case Operator("/", (first, second)):
            return f"double({in_cel(first)}) / {in_cel(second, 6)}"
        case Operator(do, (first, second)):
            strength = STRENGTH[do]
            text = f"{in_cel(first, strength)} {do} {in_cel(second, strength + 1)}"
            return f"({text})" if strength < outer_strength else text
    return "[" + ", ".join(in_cel(part) for part in tree.parts) + "]"  # type: ignore[union-attr]  # a list: all else is above


def cel_path(path: MemberPath) -> str:
    plain = all(IDENTIFIER.fullmatch(each) and each not in WORDS | RESERVED_WORDS for each in path.members)
    return (
        path.name
        if plain
        else path.root + "".join(f"[{json.dumps(each, ensure_ascii=False)}]" for each in path.members)
    )


def to_yawl(condition: str) -> str | None:
    """A condition of ours in YAWL's language, or None where it has no words for it."""
    tree = parse(condition)
    text = in_yawl(tree) if tree is not None else None
    if text is None:
        return None
    names = [path.members[-1] for path in paths_in(tree) if path.members] if tree is not None else []
    meant = re.sub(r"\b(?:case|item)\.data\b", "data", condition)
    try:
        return text if parse(to_cel(text, names)) == parse(meant) else None
    except Untranslatable:
        return None


def in_yawl(tree: Tree, outer_strength: int = 0) -> str | None:
    match tree:
        case Constant(bool() as value):
            return str(value).lower() if outer_strength else str(value)
        case Constant(int() | float() as value):
            return str(value)
        case Constant(str() as value) if '"' not in value:
            return f'"{value}"'
        case MemberPath(name, "trigger", ()):
            return name
        case MemberPath(_, "data", (member,)) | MemberPath(_, "case" | "item", ("data", member)):
            return member if re.fullmatch(r"[^\W\d]\w*", member) else None
        case Operator(do, (first, second)) if do in STRENGTH:
            left, right = in_yawl(first, STRENGTH[do]), in_yawl(second, STRENGTH[do] + 1)
            text = f"{left} {IN_YAWL.get(do, do)} {right}"
            mixed = 0 < outer_strength <= 2 and STRENGTH[do] <= 2
            return (
                None
                if left is None or right is None
                else f"({text})"
                if STRENGTH[do] < outer_strength or mixed
                else text
            )
    return None
