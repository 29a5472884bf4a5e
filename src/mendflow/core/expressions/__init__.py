"""Evaluates expressions on data from a lookup, in the language that each expression names."""

from functools import lru_cache

from mendflow.core.expressions import xpath
from mendflow.core.expressions.cel import compile_expression, flaw
from mendflow.core.expressions.contract import ExpressionError, Lookup
from mendflow.core.expressions.scanner import RESERVED
from mendflow.core.expressions.templates import (
    expressions_of,
    join_parts,
    literal,
    plain_text,
    resolve_text,
    template_parts,
)
from mendflow.core.expressions.text_values import as_text
from mendflow.core.expressions.work_budget import WORK, handed_over
from mendflow.core.model.expr import CEL, XPATH, Expr
from mendflow.core.model.templates import Template
from mendflow.core.model.values import Value, check_made_value

__all__ = [
    "RESERVED",
    "ExpressionError",
    "Lookup",
    "evaluate",
    "expressions_of",
    "flaw",
    "is_template",
    "literal",
    "plain_text",
    "problem",
    "references",
    "resolve",
    "resolve_as_text",
    "template_parts",
]

LANGUAGES = (CEL, XPATH)
_SMALL = frozenset({type(None), bool})


def evaluate(expr: Expr, lookup: Lookup) -> Value:
    """The value of an expression as plain data, or an ExpressionError that says why there is none."""
    if expr.language == XPATH:
        return _checked(xpath.value(expr, xpath.XPathEnvironment(lookup)), expr.text)
    _demand(expr.language)
    compiled = compile_expression(expr.text)
    value = compiled.evaluate(lookup)
    return value if compiled.path else _checked(value, expr.text)  # data that is there was looked at when it came


def resolve(template: Template, lookup: Lookup, language: str = CEL) -> Value:
    """The template with its expressions replaced by their values. Data without any is given back as it is."""
    if isinstance(template, str):
        if "${{" not in template:
            return template
        _demand(language)
        return _checked(resolve_text(template, lookup), template)
    if isinstance(template, (dict, list, tuple)) and is_template(template):
        _demand(language)
        return _checked(_resolved(template, lookup), "the data")
    return template


def resolve_as_text(template: Template, lookup: Lookup) -> str:
    """The template as a text, even if it is one expression and nothing else."""
    if not isinstance(template, str):
        return as_text(resolve(template, lookup))
    if "${{" not in template:
        return template
    return str(_checked(join_parts(template_parts(template), lookup), template))


def _resolved(template: Template, lookup: Lookup) -> Value:
    if isinstance(template, str):
        return resolve_text(template, lookup)
    if isinstance(template, dict):
        return {_resolved_key(key, lookup): _resolved(part, lookup) for key, part in template.items()}
    return [_resolved(part, lookup) for part in template] if isinstance(template, (list, tuple)) else template


def _resolved_key(key: str, lookup: Lookup) -> str:
    return as_text(resolve_text(key, lookup), key) if "${{" in key else key


def _checked(value: Value, text: str) -> Value:
    if type(value) in _SMALL:
        return value
    if reason := check_made_value(value):
        raise ExpressionError(f"`{text:.80}` gives an invalid value: {reason}")
    WORK.spent_elsewhere(handed_over(value))
    return value


def is_template(template: Template) -> bool:
    """Whether any text in it holds an expression, or a literal `$${{`."""
    if isinstance(template, str):
        return "${{" in template
    if isinstance(template, dict):
        return any(map(is_template, template)) or any(map(is_template, template.values()))
    return isinstance(template, (list, tuple)) and any(map(is_template, template))


def references(what: Template | Expr) -> frozenset[str]:
    """The names that it asks for: roots, and `jobs.NAME` and `links.NAME` one by one."""
    if isinstance(what, Expr):
        return xpath.names(what) if what.language == XPATH else _names(what.text)
    return frozenset().union(*(_names(piece.text) for piece in expressions_of(what)))


def problem(expr: Expr) -> str | None:
    """Why an expression is refused, or None. XPath is never refused: in BPEL its errors are faults at evaluation, which
    a flow can catch."""
    if expr.language not in LANGUAGES:
        return f"`{expr.language}` is not a known language of expressions; use {', '.join(LANGUAGES)}"
    found = flaw(expr.text) if expr.language == CEL else None
    return found.message if found else None


@lru_cache(maxsize=4096)
def _names(text: str) -> frozenset[str]:
    return compile_expression(text).names


def _demand(language: str) -> None:
    if language != CEL:
        raise ExpressionError(f"`{language}` is not a known language of templates or conditions")
