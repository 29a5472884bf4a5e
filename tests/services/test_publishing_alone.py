"""A job that did its work, and whose files could not be taken to their place: only that is repeated."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from mendflow.core.model.data import Publication
from mendflow.core.model.faults import AttemptStage, Category, Fault
from mendflow.core.model.flow import Flow, Input, JobActivity, PrimitiveStep, Sequence
from mendflow.core.model.ids import FlowName
from mendflow.core.model.jobs import JobSpec, Outcome
from mendflow.core.model.repair import ExceptionType, Primitive
from mendflow.core.model.rules import Rule, RuleSet, RuleTree
from mendflow.core.model.templates import PublicationTemplate
from mendflow.core.model.values import FileRef, Value
from mendflow.core.model.views import CaseView
from mendflow.formats.shipped import default_rules
from mendflow.services.api.domain import Domain
from mendflow.services.base.clock import SystemClock
from mendflow.services.runtime.server import Server, ServerSettings
from mendflow.stores.files import FolderFileStore
from mendflow.stores.memory import MemoryStore
from tests.patience import PATIENCE_S
from tests.services.conftest import HandPilot

MADE = FileRef(sha256="a" * 64, bytes=3, name="out.txt")
PLACE = "file:///readonly/out.txt"


def flow(retries: int = 0) -> Flow:
    job = JobActivity(
        name="make",
        command="make > out.txt",
        files={"out": "out.txt"},
        publish={"out": PublicationTemplate(logical="", url=PLACE)},
        retries=retries,
    )
    return Flow(name=FlowName("f"), body=job, outputs={"answer": "${{ jobs.make.outputs.answer }}"})


def refused(reason: str = "read-only", *, lasting: bool = False, kept: bool = True) -> Outcome:
    data: Value = {"logical": "", "element": PLACE, "reason": reason, "passing": False, "lasting": lasting}
    fault = Fault(
        name="notPublished",
        category=Category.OUTPUT,
        message=f"the job ended well, but out.txt could not be taken away: {reason}",
        stage=AttemptStage.STAGE_OUT,
        file="out.txt",
        data=data,
    )
    files = {"out": MADE} if kept else {}
    return Outcome(fault=fault, files=files, outputs={"answer": 42}, exit_code=0, log_tail="made it\n")


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    """With the default rules, and short waits in their levels."""
    file_store = FolderFileStore(tmp_path / "files")
    file_store.open()
    server = Server(
        store=MemoryStore(),
        file_store=file_store,
        clock=SystemClock(),
        settings=ServerSettings(files_roots=None, levels_ms=(100, 100, 100)),
        version="test",
        shipped=default_rules(),
    )
    await server.open()
    yield server
    await server.close()


async def ended(domain: Domain, pilot: HandPilot, case: str, play: Callable[[JobSpec], Outcome]) -> CaseView:
    """Run what there is until the case is over."""
    async with asyncio.timeout(PATIENCE_S):
        while (view := await domain.case(case)).status == "running":
            await pilot.sync(want=4, wait_ms=50)
            await pilot.exchange({each.spec.item: play(each.spec) for each in pilot.held})
    return view


class Site:
    """Plays pilots: what was run, and which places can be written to."""

    def __init__(self, *writable: str) -> None:
        self.writable = set(writable)
        self.ran: list[JobSpec] = []
        self.published: list[JobSpec] = []

    def play(self, spec: JobSpec) -> Outcome:
        (self.ran if spec.command else self.published).append(spec)
        if spec.publish["out"].url not in self.writable:
            return refused()
        return Outcome(outputs={"answer": 42} if spec.command else None, log_tail="made it\n" if spec.command else "")


def rules(**settings: Value) -> RuleSet:
    step = PrimitiveStep(name="again", do=Primitive.RESTAGE, settings={"way": "target", **settings})
    inputs = {"context": Input(type="map", required=True)}
    exlet = Flow(name=FlowName("mend"), exlet=True, inputs=inputs, body=Sequence(name="mend.steps", body=(step,)))
    rule = Rule(id=1, condition='fault.name == "notPublished" && job.generation == 1', exlet="mend")
    return RuleSet(name="f", trees={ExceptionType.ABORT: {"make": RuleTree({1: rule}, 1)}}, exlets={"mend": exlet})


@pytest.mark.parametrize(
    ("to", "place"),
    [
        ("file:///other/", "file:///other/out.txt"),
        ("file:///other/named", "file:///other/named"),
        ({"out": "file:///other/mapped"}, "file:///other/mapped"),
    ],
)
async def test_a_rule_names_another_target_and_the_job_is_run_once(
    domain: Domain, pilot: HandPilot, to: Value, place: str
) -> None:  # FM-8d DU-4
    site = Site(place)
    await domain.deploy(flow(retries=3))
    await domain.put_rules(rules(publish_to=to), who="me")
    case = (await domain.start("f", {}, who="me")).id
    view = await ended(domain, pilot, case, site.play)
    assert (view.status, view.outputs) == ("completed", {"answer": 42})
    (ran,), (published,) = site.ran, site.published
    assert ran.publish["out"].url == PLACE and published.publish["out"] == Publication(url=place)
    assert published.inputs == {"out.txt": MADE} and published.files == ran.files
    item = await domain.item(case, "make")
    assert item.log_tail == "" and len(item.attempts) == 2
    assert (await domain.log(f"{case}/{item.serial}", attempt=1)).text == "made it\n"


async def test_by_default_it_is_published_again_later_and_not_run_again(
    domain: Domain, pilot: HandPilot
) -> None:  # FM-8a DU-4
    site = Site()

    def play(spec: JobSpec) -> Outcome:
        outcome = site.play(spec)
        if len(site.published) == 1:
            site.writable.add(PLACE)  # somebody has made it writable
        return outcome

    await domain.deploy(flow(retries=3))
    case = (await domain.start("f", {}, who="me")).id
    view = await ended(domain, pilot, case, play)
    assert (view.status, view.outputs) == ("completed", {"answer": 42})
    assert len(site.ran) == 1 and len(site.published) == 2


async def test_what_can_never_be_published_is_given_up_with_its_files_after_all_levels(
    domain: Domain, pilot: HandPilot
) -> None:  # DU-4
    site = Site()
    await domain.deploy(flow(retries=3))
    case = (await domain.start("f", {}, who="me")).id
    view = await ended(domain, pilot, case, site.play)
    assert view.status == "failed" and len(site.ran) == 1 and len(site.published) == 3
    item = await domain.item(case, "make")
    assert item.files == {"out": MADE.as_value()}


async def test_a_job_whose_files_are_not_safe_is_run_again_as_before(domain: Domain, pilot: HandPilot) -> None:
    ran: list[JobSpec] = []

    def play(spec: JobSpec) -> Outcome:
        ran.append(spec)
        return refused(kept=False) if len(ran) == 1 else Outcome(outputs={"answer": 42})

    await domain.deploy(flow(retries=1))
    case = (await domain.start("f", {}, who="me")).id
    view = await ended(domain, pilot, case, play)
    assert view.status == "completed" and all(spec.command for spec in ran) and len(ran) == 2


async def test_what_only_another_place_would_help_fails_at_once_with_its_files_and_an_alert(
    domain: Domain, pilot: HandPilot
) -> None:  # DU-4
    await domain.deploy(flow())
    case = (await domain.start("f", {}, who="me")).id
    view = await ended(domain, pilot, case, lambda spec: refused("another file lies there", lasting=True))
    assert view.status == "failed"
    item = await domain.item(case, "make")
    assert item.files == {"out": MADE.as_value()}
    facts = (await domain.why(f"{case}:make")).facts
    assert any("what it made is safe on the server: out" in fact for fact in facts)
    (alert,) = await domain.alerts()
    assert alert.kind == "failure" and "no rule took it up" in alert.sentence and alert.case == case


async def test_a_failure_that_no_rule_takes_up_is_told_once_for_each_cause(domain: Domain, pilot: HandPilot) -> None:
    fault = Fault(name="exitCode", category=Category.JOB, message="it ended with exit code 1", exit_code=1)
    await domain.deploy(flow())
    for _ in range(3):
        case = (await domain.start("f", {}, who="me")).id
        await ended(domain, pilot, case, lambda spec: Outcome(fault=fault, exit_code=1))
    (alert,) = await domain.alerts()
    assert alert.subject == "f/make" and "exit code 1" in alert.sentence and alert.severity == "warning"
    await domain.acknowledge(alert.id, who="me")
    assert not await domain.alerts()
