"""What tests of repairs are made of: rules and exlets in a line each, and a house with a pilot in the test's hands."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from itertools import count
from pathlib import Path
from typing import Any

from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import Activity, Flow, Input, PrimitiveStep, Scope, Sequence
from mendflow.core.model.ids import CaseId, FlowName
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.repair import CASE_LEVEL, Decision, ExceptionType, Primitive, Target
from mendflow.core.model.rules import Rule, RuleSet, RuleTree
from mendflow.core.model.views import CaseView
from mendflow.services.api.domain import Domain
from mendflow.services.base.clock import SystemClock
from mendflow.services.base.contracts import Clock, MetaScheduler
from mendflow.services.base.source_reader import NO_SOURCE_READER, SourceReader
from mendflow.services.runtime.server import NO_DOMAINS, Runtime, Server, ServerSettings
from mendflow.stores.contract import FieldCondition, Store
from mendflow.stores.files import FolderFileStore
from tests.patience import until
from tests.services.conftest import HandPilot

FAILED = Outcome(fault=Fault(name="exit", category=Category.JOB, message="it ended with exit code 3", exit_code=3))
ROOTS = ("case", "item", "job", "fault", "items", "trigger", "timed_out", "event", "now", "history", "outcome")

_numbers = count(1)


def mend(do: Primitive, target: Target = "item", item: str = "", **settings: Any) -> PrimitiveStep:
    named = {name.rstrip("_"): value for name, value in settings.items()}
    return PrimitiveStep(name=f"m{next(_numbers)}", do=do, target=target, item=item, settings=named)


def exlet(name: str, *steps: Activity, **more: Any) -> Flow:
    """An exlet as its file gives it: one input, whose roots are variables."""
    at = "inputs.context"
    variables = {root: f"${{{{ has({at}.{root}) ? {at}.{root} : null }}}}" for root in ROOTS}
    body = Scope(name=f"{name}.exlet", variables=variables, body=Sequence(name=f"{name}.steps", body=steps))
    return Flow(
        name=FlowName(name), exlet=True, inputs={"context": Input(type="map", required=True)}, body=body, **more
    )


def tree(*rules: tuple[str, str] | Rule) -> RuleTree:
    """One rule after another, each asked if those before did not hold."""
    made = [
        rule if isinstance(rule, Rule) else Rule(id=number, condition=rule[0], exlet=rule[1])
        for number, rule in enumerate(rules)
    ]
    linked = {
        rule.id: Rule(
            id=rule.id,
            condition=rule.condition,
            exlet=rule.exlet,
            passive=rule.passive,
            on_false=made[place + 1].id if place + 1 < len(made) else None,
        )
        for place, rule in enumerate(made)
    }
    return RuleTree(linked, made[0].id)


def rule_set(
    flow: str, type: ExceptionType, *rules: tuple[str, str], exlets: list[Flow] | None = None, task: str = "a"
) -> RuleSet:
    name = "" if type in CASE_LEVEL else task
    return RuleSet(
        name=flow, trees={type: {name: tree(*rules)}}, exlets={str(each.name): each for each in exlets or []}
    )


def flow(body: Activity, name: str = "f", **more: Any) -> Flow:
    return Flow(name=FlowName(name), body=body, **more)


class World:
    """A house, its domain, and a pilot that does what the test says."""

    def __init__(
        self,
        store: Store,
        folder: Path,
        rules: ServerSettings,
        shipped: RuleSet | None = None,
        domains: Mapping[str, MetaScheduler] = NO_DOMAINS,
        clock: Clock | None = None,
        source_reader: SourceReader = NO_SOURCE_READER,
    ) -> None:
        file_store = FolderFileStore(folder / "files")
        file_store.open()
        self.store = store
        self.server = Server(
            store=store,
            file_store=file_store,
            clock=clock or SystemClock(),
            settings=rules,
            version="test",
            shipped=shipped,
            domains=domains,
            source_reader=source_reader,
        )
        self.domain = Domain(self.server)
        self.pilot = HandPilot(self.domain)

    @property
    def runtime(self) -> Runtime:
        return self.server.runtime

    async def put(self, rules: RuleSet) -> None:
        await self.runtime.exceptions.rules.put(rules, author="test")
        await self.runtime.ledger.settled()

    async def start(self, what: Flow, **inputs: Any) -> CaseId:
        await self.domain.deploy(what)
        return (await self.domain.start(what.name, inputs, who="me")).id

    async def case(self, case: str) -> CaseView:
        return await self.domain.case(case)

    async def status(self, case: str) -> str:
        return (await self.domain.case(case)).status

    async def decisions(self, case: str) -> list[Decision]:
        return await self.runtime.exceptions.decisions.of_case(CaseId(case))

    async def decision(self, case: str) -> Decision:
        """The only one of the case."""
        [found] = await self.decisions(case)
        return found

    async def exlets(self, case: str) -> list[CaseView]:
        """Exlets of a case, in their order."""
        await self.runtime.ledger.settled()
        found = await self.store.search("case", [FieldCondition("mends", case)], order_by="started_at", limit=100)
        return [await self.domain.case(each.id) for each in found]

    async def until(self, check: Callable[[], Awaitable[Any]], what: str = "") -> Any:
        """What the check gives when it gives something."""
        return await until(check, what)

    async def until_status(self, case: str, *wanted: str) -> None:
        async def reached() -> bool:
            return await self.status(case) in wanted

        await self.until(reached, f"{case} {wanted}")

    async def until_decided(self, case: str, state: str) -> Decision:
        async def reached() -> Decision | None:
            return next((each for each in await self.decisions(case) if each.state == state), None)

        found = await self.until(reached, f"a decision of {case} that is {state}")
        assert isinstance(found, Decision)
        return found

    async def quiet(self) -> None:
        """Let everything happen that can happen by itself."""
        for _ in range(40):
            await asyncio.sleep(0)
            await self.runtime.ledger.settled()

    async def take(self, *, items: int = 1) -> list[str]:
        """Fetch jobs until so many are held, and name their items."""

        async def held() -> list[str]:
            await self.pilot.sync(want=4, wait_ms=20)
            names = sorted(str(each.spec.item) for each in self.pilot.held)
            return names if len(names) >= items else []

        return list(await self.until(held, f"{items} jobs"))

    async def report(self, **ended: Outcome) -> None:
        await self.pilot.exchange({name.replace("__", "["): outcome for name, outcome in ended.items()})
        await self.quiet()

    async def restart(self) -> None:
        """As after a crash: new services over what the store holds."""
        self.server.on_broken(self.server.runtime, "the test says so")
        while self.server.health().status != "ok":
            await asyncio.sleep(0.01)
