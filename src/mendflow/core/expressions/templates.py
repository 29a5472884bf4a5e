"""Templates: plain data whose texts may contain `${{ expression }}`.

A text that is just one expression takes the expression's value with its type. Anything else becomes text. `$${{` stands
for a plain `${{`. A text is parsed once and cached; data without expressions is returned unchanged."""

from functools import lru_cache
from typing import Final, NamedTuple

from mendflow.core.expressions.cel import compile_expression
from mendflow.core.expressions.contract import ExpressionError, Lookup
from mendflow.core.expressions.text_values import as_text
from mendflow.core.model.values import Value
from mendflow.lazy import lazy_pattern

OPENING: Final = lazy_pattern(r"\$?\$\{\{")
STRINGS: Final = lazy_pattern(r""""(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\}\}""")
PARSED_MAX: Final = 4096


class TemplatePart(NamedTuple):
    """Literal text, or the text of an expression and where it starts in the template."""

    text: str
    is_expression: bool
    offset: int


@lru_cache(maxsize=PARSED_MAX)
def template_parts(text: str) -> tuple[TemplatePart, ...]:
    """Take a text apart. Brackets that close inside a string constant of the expression do not end it."""
    found: list[TemplatePart] = []
    literal, at = "", 0
    while opening := OPENING.search(text, at):
        literal += text[at : opening.start()]
        if opening.group().startswith("$$"):
            literal, at = literal + "${{", opening.end()
            continue
        end = closing_at(text, opening.end())
        if end < 0:
            raise ExpressionError("`${{` has no `}}` after it; write `$${{` for the plain text", opening.start())
        if literal:
            found.append(TemplatePart(literal, False, at))
        inner = text[opening.end() : end]
        found.append(TemplatePart(inner.strip(), True, opening.end() + len(inner) - len(inner.lstrip())))
        literal, at = "", end + 2
    if literal + text[at:]:
        found.append(TemplatePart(literal + text[at:], False, at))
    return tuple(found)


def closing_at(text: str, start: int) -> int:
    for found in STRINGS.finditer(text, start):
        if found.group() == "}}":
            end = found.start()
            while text.startswith("}}", end + 1):  # `}}}` closes a map inside the expression first
                end += 1
            return end
    return -1


def literal(text: str) -> str:
    """The template that gives this very text."""
    return text.replace("${{", "$${{")


def plain_text(template: str) -> str | None:
    """The text that a template gives whatever is known; None if there is an expression in it."""
    parts = template_parts(template)
    return None if any(part.is_expression for part in parts) else "".join(part.text for part in parts)


def expressions_of(template: Value) -> list[TemplatePart]:
    """Every expression in a template, in order."""
    if isinstance(template, str):
        return [piece for piece in template_parts(template) if piece.is_expression] if "${{" in template else []
    if isinstance(template, (list, tuple)):
        return [piece for part in template for piece in expressions_of(part)]
    if isinstance(template, dict):
        return [piece for part in (*template.keys(), *template.values()) for piece in expressions_of(part)]
    return []


def resolve_text(text: str, lookup: Lookup) -> Value:
    if "${{" not in text:
        return text
    parts = template_parts(text)
    if len(parts) == 1 and parts[0].is_expression:
        return compile_expression(parts[0].text).evaluate(lookup)
    return join_parts(parts, lookup)


def join_parts(parts: tuple[TemplatePart, ...], lookup: Lookup) -> str:
    """The pieces as one text."""
    return "".join(
        as_text(compile_expression(part.text).evaluate(lookup), part.text) if part.is_expression else part.text
        for part in parts
    )
