"""The laws of a case hold for processes too: random flows, as the body of a process with XML, in a world that
interferes."""

from random import Random
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from mendflow.core.model.flow import ActivityNode, Assign, Empty, Flow, Pick, Receive, Reply, Scope, Wait
from mendflow.core.model.xml import XmlTarget
from tests.core.engine.random_flows import random_flow
from tests.core.engine.xml.papers import DECLARED, WORLD, copy, count, order, xpath
from tests.property.test_engine_laws import Chaos

COUNT = (
    copy("$number + 1", XmlTarget(variable="number")),
    copy("$number", "$order/@id"),
    copy("$order/o:item[1]", "$order/o:note"),
)


def told(activity: Any) -> Any:
    """The same without messages, which in a process are of another kind; where they were something is copied."""
    if isinstance(activity, (Receive, Reply, Empty)):
        return Assign(xml=COUNT, **standard(activity))
    if isinstance(activity, Pick):
        return Wait(duration=xpath("concat('PT', 1 + 1, 'S')"), **standard(activity))
    if isinstance(activity, tuple):
        return tuple(told(each) for each in activity)
    if not isinstance(activity, msgspec.Struct):
        return activity
    changed = {field: told(getattr(activity, field)) for field in activity.__struct_fields__}
    if isinstance(activity, Scope):
        changed["messages"] = ()
    return msgspec.structs.replace(activity, **changed)


def standard(activity: ActivityNode) -> dict[str, Any]:
    return {field: getattr(activity, field) for field in ActivityNode.__struct_fields__}


def as_process(flow: Flow) -> Flow:
    held = {"number": 0, "order": order(), "count": count(1)}
    body = Scope(name="process.whole", body=told(flow.body), declared=DECLARED)
    return msgspec.structs.replace(flow, body=body, xml=WORLD, variables=held)


@given(st.integers(0, 2**32))
def test_a_process_keeps_every_law_whatever_happens_to_it(seed: int) -> None:
    random = Random(seed)
    world = Chaos(as_process(random_flow(random)), random)
    world.live(interference=60)
    assert world.case.over
