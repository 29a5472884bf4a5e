"""The activity validate."""

import pytest

from mendflow.core.model.flow import Sequence, Validate
from mendflow.core.model.values import Value
from tests.core.engine.xml.papers import count, fault_of, order, ran


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("order", order()),
        ("count", count(" 5 ")),
        ("few", 10),
        ("flag", True),
        ("amount", 0.5),
        ("whole", {"$xml": "<any/>"}),
        ("ordered", {"order": order()}),
        ("mixed", {"count": count(1), "size": 2}),
    ],
)
def test_what_is_as_its_schema_wants_it_passes(name: str, value: Value) -> None:
    assert ran(Validate(name="v", variables=(name,)), **{name: value}).status == "completed"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("order", order("<o:what/>")),
        ("count", count("many")),
        ("few", 11),
        ("flag", "yes"),
        ("ordered", {"order": order("<o:what/>")}),
        ("mixed", {"count": count(1)}),
    ],
)
def test_what_is_not_throws_invalid_variables(name: str, value: Value) -> None:
    assert fault_of(ran(Validate(name="v", variables=(name,)), **{name: value})) == "invalidVariables"


def test_a_variable_without_a_value_is_not_valid_nor_invalid() -> None:
    assert fault_of(ran(Validate(name="v", variables=("order",)))) == "uninitializedVariable"


def test_what_nobody_can_count_makes_an_event_short() -> None:
    play = ran(Sequence(name="s", body=tuple(Validate(name=f"v{at}", variables=("few",)) for at in range(6))), few=1)
    pieces = 1
    while play.status == "running":
        play.proceed(next(iter(play.out)))
        pieces += 1
    assert pieces >= 3
