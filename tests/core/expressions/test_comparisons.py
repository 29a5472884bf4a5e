"""What is compared in a condition and can never be equal, told with the values."""

import pytest

from mendflow.core.expressions import ExpressionError, evaluate
from mendflow.core.expressions.comparisons import never_equal
from mendflow.core.model.expr import Expr
from mendflow.core.model.values import Value

KNOWN: dict[str, Value] = {
    "jobs.my-look": {"outputs": {"found": True, "count": 3, "state": "ok"}},
    "jobs.work": {"outputs": [{"n": 1}, None]},
    "inputs": {"wanted": "3"},
}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "jobs.my-look.outputs.found == 'true'",
            ["`jobs.my-look.outputs.found` is true and is compared with the text 'true', so they are never equal"],
        ),
        (
            "inputs.wanted == jobs.my-look.outputs.count",
            [
                "`inputs.wanted` is the text '3' and is compared with `jobs.my-look.outputs.count`, the number 3, so "
                "they are never equal"
            ],
        ),
        ("jobs.my-look.outputs.state == 'no' || jobs.my-look.outputs.count == 4", []),
        ("jobs.my-look.outputs.gone == 'true'", []),
        ("jobs.my-look.outputs.found == null", []),
        ("jobs.work.outputs.exists(o, o.n == 'x')", []),
    ],
)
def test_what_can_never_be_equal_is_named_with_its_values(text: str, said: list[str]) -> None:
    assert never_equal(text, KNOWN.__getitem__) == said


def test_a_member_of_what_failed_in_a_loop_is_told_with_its_element() -> None:
    with pytest.raises(ExpressionError) as caught:
        evaluate(Expr("jobs.work.outputs.map(o, o.n)"), KNOWN.__getitem__)
    assert "work[1] gave no result, so it is null" in caught.value.message
    assert "`jobs.work.outputs.filter(o, o != null)`" in caught.value.message
