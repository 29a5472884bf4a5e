"""A turn of a loop can be undone: what is shown of it is no item id, and a label as flows take it."""

import pytest

from mendflow.core.engine import CompensationStep, compile_flow
from mendflow.core.model.flow import Flow, JobActivity
from mendflow.core.model.ids import FlowName, ItemId
from mendflow.services.recovery.unwinding import flow_of


@pytest.mark.parametrize("item", ["pay", "pay[1]", "pay[1,20]", f"{'p' * 100}[1]"])
def test_the_flow_that_undoes_an_item_can_be_started(item: str) -> None:  # AD-5
    undo = Flow(name=FlowName("fair.undo.pay"), body=JobActivity(name="back", command="x"))
    done = CompensationStep(number=3, name="pay", item=ItemId(item), kind="scope", flow=undo)
    plan = compile_flow(flow_of("fair", [(done, undo, {})]))
    (call,) = (node for node in plan.nodes if node.kind == "call")
    assert call.shown.startswith("undo p") and "[" not in call.shown
