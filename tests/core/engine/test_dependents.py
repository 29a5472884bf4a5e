"""What has to run again with a part of a flow: all that waits for it, directly or not."""

import pytest

from mendflow.core.engine.dependents import with_dependents
from mendflow.core.engine.plan import WORK, compile_flow
from mendflow.core.model.flow import Activity, Flow, ForEach, JobActivity, LinkSource, Parallel, Sequence
from mendflow.core.model.ids import FlowName


def job(name: str, *, after: tuple[str, ...] = (), before: tuple[str, ...] = ()) -> JobActivity:
    return JobActivity(
        name=name, command="true", targets=after, sources=tuple(LinkSource(link=each) for each in before)
    )


LINKED = Parallel(
    name="p",
    links=("ab", "bc"),
    branches=(job("a", before=("ab",)), job("b", after=("ab",), before=("bc",)), job("c", after=("bc",)), job("d")),
)
IN_ORDER = Sequence(name="s", body=(job("a"), ForEach(name="each", items=[1, 2], body=job("b")), job("c")))


@pytest.mark.parametrize(
    ("body", "name", "found"),
    [
        (LINKED, "a", {"a", "b", "c"}),
        (LINKED, "b", {"b", "c"}),
        (LINKED, "d", {"d"}),
        (IN_ORDER, "a", {"a", "b", "c"}),
        (IN_ORDER, "b", {"b", "c"}),
        (IN_ORDER, "each", {"b", "c"}),
        (IN_ORDER, "nothing", set()),
    ],
)
def test_what_depends_on_a_part_is_found_by_links_and_order(body: Activity, name: str, found: set[str]) -> None:
    plan = compile_flow(Flow(name=FlowName("f"), body=body))
    nodes = [plan.nodes[index] for index in with_dependents(plan, [name])]
    assert {node.name for node in nodes if node.kind in WORK} == found
