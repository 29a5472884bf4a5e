"""Conditions of jobs, as `when` says them: a comparison of handles, how a job ended, or a text."""

import re
from typing import Any, Final

from mendflow.core.expressions import ExpressionError, problem, template_parts
from mendflow.core.model.expr import Expr
from mendflow.formats.python.handles import Handle
from mendflow.formats.python.problems import bad_flow

ASKING: Final = re.compile(r"\b(has|failed|skipped)\(\s*$")
"""Functions that ask about a name and not about its value."""


def condition_of(given: Any, owner: object, results: dict[str, str]) -> Expr:
    """A condition: true or false, a handle such as `rows > 3`, or a text such as f"{rows} > 3". `results` has the jobs
    whose whole results some expressions are."""
    if isinstance(given, bool):
        return Expr(str(given).lower())
    if isinstance(given, Handle):
        if given._owner is not owner:
            raise bad_flow(f"when: `{given._expression}` belongs to another flow; pass it in as an input")
        return checked(Expr(given._expression))
    if not isinstance(given, str):
        raise bad_flow(f'when is a condition such as rows > 3, or a text such as f"{{rows}} > 3", not {given!r:.80}')
    try:
        return checked(Expr(condition_text(given, results)))
    except ExpressionError as error:
        raise bad_flow(f"when: {error.message}") from None


def condition_text(text: str, results: dict[str, str]) -> str:
    """The condition with its handles, each in parentheses; what asks about a job gets the job."""
    parts = template_parts(text)
    if len(parts) == 1:
        return parts[0].text
    found = ""
    for part in parts:
        if not part.is_expression:
            found += part.text
        elif ASKING.search(found):
            found += results.get(part.text, part.text)
        else:
            found += f"({part.text})"
    return found


def checked(condition: Expr) -> Expr:
    if wrong := problem(condition):
        raise bad_flow(f"when `{condition.text}`: {wrong}")
    return condition
