"""CEL's library takes a text up to its first NUL character only: no expression works with the rest gone."""

import pytest

from mendflow.core.expressions import ExpressionError, evaluate
from mendflow.core.model.expr import Expr
from mendflow.core.model.values import Value

DATA: dict[str, Value] = {"a": "a\0b", "l": ["a\0b"], "m": {"a\0b": 1}, "row": {"text": "a\0b", "n": 1}}


@pytest.mark.parametrize(
    "text",
    [
        "a + 'x'",
        "size(a)",
        "l.map(x, x + 'y')",
        "m.map(k, k)",
        "quote('a\\u0000b')",
        "['b\\u0000c'].sort()",
        "[{'k': 'a\\u0000b'}].group_by('k')",
        "'a\\u0000b'.replace('a', 'b')",
    ],
)
def test_a_text_with_a_nul_character_is_refused_where_it_would_be_cut(text: str) -> None:
    with pytest.raises(ExpressionError, match="has a NUL character"):
        evaluate(Expr(text), DATA.__getitem__)


def test_a_text_with_a_nul_character_is_handed_on_whole_and_does_no_harm_beside() -> None:
    assert evaluate(Expr("row.text"), DATA.__getitem__) == "a\0b"
    assert evaluate(Expr("row.n + 1"), DATA.__getitem__) == 2
