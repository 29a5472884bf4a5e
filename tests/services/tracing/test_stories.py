"""Which cases are one story, and so one trace."""

import pytest

from mendflow.services.base.cluster import first_case_of
from mendflow.services.observe.tracing.ids import trace_of_case


@pytest.mark.parametrize(
    ("id", "story"),
    [
        ("night-7f3a21", "night-7f3a21"),
        ("night-7f3a21.4.2", "night-7f3a21"),
        ("night-7f3a21/5", "night-7f3a21"),
        ("talks-soap.3", "talks-soap.3"),
        ("talks-soap.3.7", "talks-soap.3"),
        ("talks-soap.3/5", "talks-soap.3"),
        ("talks-soap.3:x-1", "talks-soap.3"),
    ],
)
def test_everything_belongs_to_the_case_that_it_began_with(id: str, story: str) -> None:
    assert first_case_of(id) == story


def test_two_conversations_are_two_traces() -> None:
    assert trace_of_case("talks-soap.1") != trace_of_case("talks-soap.2")
    assert trace_of_case("talks-soap.1") == trace_of_case("talks-soap.1.4")
