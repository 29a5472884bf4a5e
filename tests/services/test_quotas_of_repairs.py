"""What a repair does is bounded by the quotas of the project as all else is."""

import pytest

from mendflow.core.model.errors import QuotaExceeded
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import Call, Flow
from mendflow.core.model.ids import FlowName
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.repair import ExceptionType
from mendflow.core.model.rules import Rule, RuleSet, RuleTree
from mendflow.services.api.domain import Domain
from tests.services.conftest import HandPilot
from tests.services.test_project_quotas import bound, flow_of, start, until_used, used
from tests.services.test_repairs import CONTEXT


async def test_what_a_repair_calls_counts(domain: Domain, pilot: HandPilot) -> None:  # SE-6
    await bound(domain, cases=2)
    await domain.deploy(flow_of("aid", 2), project="red")
    body = Call(name="aid", flow=FlowName("aid"))
    helping = Flow(name=FlowName("helping"), exlet=True, inputs=CONTEXT, body=body)
    tree = RuleTree({1: Rule(id=1, condition="true", exlet="helping")}, 1)
    rules = RuleSet(name="red-flow", trees={ExceptionType.ABORT: {"j0": tree}}, exlets={"helping": helping})
    await domain.put_rules(rules, who="ann", project="red")
    await start(domain, 1)
    assert await used(domain, "cases") == 1
    await pilot.sync(want=1, wait_ms=1000)
    await pilot.exchange({"j0": Outcome(fault=Fault(name="jobFailed", category=Category.JOB, message="7"))})
    await until_used(domain, "cases", 2)
    with pytest.raises(QuotaExceeded, match="2 of 2 are in use"):
        await start(domain, 1)
