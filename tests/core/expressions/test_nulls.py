"""A process survives any number of nulls. The evaluator's library takes a reference to None with each that it gives."""

from mendflow.core.expressions import evaluate
from mendflow.core.model.expr import Expr

NULLS = {"list": [None] * 100, "one": None}


def test_a_hundred_thousand_nulls_do_not_end_the_process() -> None:
    for _ in range(1_000):
        assert evaluate(Expr("x.list.map(each, each)"), {"x": NULLS}.__getitem__) == NULLS["list"]
        assert evaluate(Expr("has(x.none) ? x.none : null"), {"x": NULLS}.__getitem__) is None
