"""A server learns: what fails is counted, proposed for, adopted or dismissed, and what that saves is reported."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import msgspec
import pytest

from mendflow.core.learning.group_statistics import LearnedFailure
from mendflow.core.model.errors import Conflict, NotFound, StoreUnavailable
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import Flow, JobActivity
from mendflow.core.model.ids import FlowName
from mendflow.core.model.jobs import JobSpec, Measurements, Outcome
from mendflow.core.model.learning import AdoptionRequest, DismissalRequest, LearningSettings
from mendflow.core.model.repair import Decision
from mendflow.core.model.repair_views import RuleSelector
from mendflow.core.model.rules import RuleSet
from mendflow.core.model.templates import ResourceTemplates
from mendflow.formats.shipped import default_rules
from mendflow.services.api.domain import Domain
from mendflow.services.base.clock import SystemClock
from mendflow.services.learning.counting import FailureCounter
from mendflow.services.learning.proposal_store import PROPOSAL_KIND
from mendflow.services.learning.sizes import SIZE_KIND
from mendflow.services.learning.statistics_store import GROUP_KIND, StatisticsStore
from mendflow.services.runtime.server import Server, ServerSettings
from mendflow.stores.contract import Delete, Put, Store, StoredDocument, Write, WriteConflict, WriteDone
from mendflow.stores.files import FolderFileStore
from mendflow.stores.memory import MemoryStore
from mendflow.stores.sqlite.store import SqliteStore
from tests.core.learning.failures import failure_of, learned
from tests.services.conftest import HandPilot

IN_FORCE = AdoptionRequest(in_force=True)
LICENCE = Fault(name="exitCode", category=Category.JOB, message="no licence left", exit_code=9, stage="execution")


@pytest.fixture(params=["memory", "sqlite"])
async def taught(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Server]:
    """A server with the default exlets and none of the default rules."""
    store: Store = MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "store.db")
    server = server_over(store, tmp_path)
    await server.open()
    yield server
    await server.close()


HOUR_MS = 3_600_000


def server_over(store: Store, folder: Path, look_ms: int = HOUR_MS) -> Server:
    files = FolderFileStore(folder / "files")
    files.open()
    shipped: RuleSet = msgspec.structs.replace(default_rules(), trees={})
    settings = ServerSettings(files_roots=None, learning_look_ms=look_ms)
    return Server(
        store=store, file_store=files, clock=SystemClock(), settings=settings, version="test", shipped=shipped
    )


async def remember(server: Server, decisions: list[Decision]) -> Domain:
    """The store has these decisions, and all of it is counted."""
    await server.store.write([Put("decision", each.id, msgspec.json.encode(each), 0) for each in decisions])
    await server.runtime.learning.recount()
    return Domain(server)


def too_large(numbers: range) -> list[Decision]:
    text = "it used 3 GB, more than it asked for"
    return [failure_of(n, category="memory", name="memoryLimit", message=text, exit_code=None) for n in numbers]


def mended_by_hand(numbers: range) -> list[Decision]:
    return [failure_of(n, outcome="helped", exlet="try-again", by_hand=True) for n in numbers]


async def test_a_proposal_is_a_rule_with_its_evidence(taught: Server) -> None:
    # LE-1
    domain = await remember(taught, too_large(range(4)))
    [found] = await domain.proposals()
    assert (found.kind, found.state, found.exlet, found.rules) == ("repair", "open", "more-memory", "night")
    seen = found.evidence
    assert (seen.failures, seen.cases, seen.caught, seen.of, seen.spoilt, seen.breaks) == (4, 4, 4, 4, 0, "")
    assert found.cornerstone["fault"]["name"] == "memoryLimit"
    assert [each.among for each in seen.similar] == ["this cause", "other causes of category memory"]
    assert await domain.proposal(found.id[:5]) == found


async def test_se_1_rules_of_a_project_are_proposed_for_what_fails_in_it(taught: Server) -> None:
    """A flow that is sent along has whatever name its author likes: what it fails by is nothing to a flow so called."""
    await Domain(taught).deploy(Flow(name=FlowName("night"), body=JobActivity(name="a", command="x")), project="red")
    theirs = [msgspec.structs.replace(each, project="blue") for each in too_large(range(4))]
    domain = await remember(taught, theirs)
    assert await domain.proposals() == []
    domain = await remember(taught, [msgspec.structs.replace(each, project="red") for each in too_large(range(4, 8))])
    [found] = await domain.proposals()
    assert not {each.id for each in theirs} & {found.decision, *found.evidence.caught_ids}


async def test_an_adopted_proposal_is_on_trial_until_it_is_put_in_force(taught: Server) -> None:
    # LE-1
    domain = await remember(taught, too_large(range(4)))
    [found] = await domain.proposals()
    trial = await domain.adopt_proposal(found.id, AdoptionRequest(), who="ann")
    assert (trial.state, trial.adopted_by) == ("on-trial", "ann")
    rules = await domain.rule_set("night")
    assert (rules.passive_count, rules.rule_count) == (1, 1)
    forced = await domain.adopt_proposal(found.id, IN_FORCE, who="ann")
    assert forced.state == "in-force"
    assert (await domain.rule_set("night")).passive_count == 0
    with pytest.raises(Conflict, match="adopted already"):
        await domain.adopt_proposal(found.id, IN_FORCE, who="ann")


async def test_a_dismissed_proposal_is_remembered_and_does_not_come_back(taught: Server) -> None:
    # LE-1
    domain = await remember(taught, too_large(range(4)))
    [found] = await domain.proposals()
    await domain.dismiss_proposal(found.id, DismissalRequest(why="this job leaks"), who="ann")
    domain = await remember(taught, too_large(range(10, 20)))
    assert found.id not in {each.id for each in await domain.proposals()}
    [kept] = [each for each in await domain.proposals(every=True) if each.id == found.id]
    assert (kept.state, kept.why, kept.dismissed_by) == ("dismissed", "this job leaks", "ann")


async def test_a_proposal_whose_rule_was_retired_comes_back_only_with_clearly_more_failures(taught: Server) -> None:
    # LE-1
    domain = await remember(taught, too_large(range(4)))
    [found] = await domain.proposals()
    await domain.adopt_proposal(found.id, IN_FORCE, who="ann")
    assert await domain.proposals() == []
    await domain.retire_rule("night", RuleSelector(rule=1, type=found.type, task=found.task), who="ann")
    assert await domain.proposals() == [], "it is not proposed again on the same evidence"
    assert (await domain.proposal(found.id)).state == "retired"
    await remember(taught, too_large(range(10, 14)))
    assert await domain.proposals() == [], "nor for twice as many, as long as these are few"
    await remember(taught, too_large(range(20, 22)))
    [again] = await domain.proposals()
    assert (again.exlet, again.id != found.id, again.evidence.failures) == ("more-memory", True, 10)
    assert again.again == (
        "proposed again: its rule 1 of night was retired after 4 failures, and there have been 10 since the first one"
    )
    await domain.dismiss_proposal(again.id, DismissalRequest(why="it leaks"), who="bea")
    await remember(taught, too_large(range(30, 39)))
    assert await domain.proposals() == []
    await remember(taught, too_large(range(40, 42)))
    [third] = await domain.proposals()
    assert third.again.startswith(
        "proposed again: it was dismissed by bea (it leaks) after 10 failures, and there have"
    )


async def test_nothing_is_adopted_without_a_person_unless_the_settings_say_so(taught: Server) -> None:
    # LE-1
    domain = await remember(taught, too_large(range(4)))
    assert [each.state for each in await domain.proposals()] == ["open"]
    await domain.put_learning_settings(LearningSettings(adopt={"repair": "on-trial"}), who="admin")
    [found] = await domain.proposals()
    assert (found.state, found.adopted_by) == ("on-trial", "mendflow")


async def test_a_rule_on_trial_is_promoted_by_itself_after_enough_agreeing_decisions(taught: Server) -> None:
    # LE-1
    domain = await remember(taught, mended_by_hand(range(3)))
    [found] = await domain.proposals()
    assert found.kind == "by-hand"
    trial = await domain.adopt_proposal(found.id, AdoptionRequest(promote_after=3), who="ann")
    agreeing = [
        msgspec.structs.replace(
            each,
            trials=(
                await taught.runtime.exceptions.rules.judge(
                    each.type, each.flow, each.task, each.context, project=each.project
                )
            ).trials,
        )
        for each in mended_by_hand(range(10, 13))
    ]
    domain = await remember(taught, agreeing[:2])
    assert (await domain.proposal(trial.id)).trial.agreed == 2
    await domain.proposals()
    assert (await domain.proposal(trial.id)).state == "on-trial"
    domain = await remember(taught, agreeing[2:])
    await domain.proposals()
    assert (await domain.proposal(trial.id)).state == "in-force"


async def test_a_proposal_whose_failures_are_handled_is_outdated(taught: Server) -> None:
    domain = await remember(taught, too_large(range(4)))
    [found] = await domain.proposals()
    await domain.put_rules(msgspec.structs.replace(default_rules(), name="night"), who="ann")
    assert await domain.proposals() == []
    assert (await domain.proposal(found.id)).state == "outdated"


async def test_failures_that_wait_for_a_person_are_proposed_for(taught: Server) -> None:
    # LE-1
    domain = Domain(taught)
    pilot = HandPilot(domain)
    fault = Fault(name="memoryLimit", category=Category.MEMORY, message="it used 3 GB", stage="execution")
    resources = ResourceTemplates(memory_bytes=1 << 30)
    flow = Flow(name=FlowName("solve"), body=JobActivity(name="solver", command="solve", resources=resources))
    await domain.deploy(flow)
    for _ in range(3):
        await domain.start("solve", {}, who="ann", on_unhandled="hold")
        await pilot.run_all(lambda spec: Outcome(fault=fault))
    [found] = await domain.proposals()
    assert (found.kind, found.exlet, found.evidence.caught) == ("repair", "more-memory", 3)
    await domain.adopt_proposal(found.id, IN_FORCE, who="ann")
    await domain.apply_rules(found.group, who="ann")
    await pilot.run_all(lambda spec: Outcome())
    assert [case.status for case in await domain.cases(flow="solve")] == ["completed"] * 3


async def test_what_a_person_did_twice_becomes_a_rule_that_cures_the_next_case(taught: Server) -> None:
    # LE-1
    domain, tries = Domain(taught), dict[str, int]()
    pilot = HandPilot(domain)

    def play(spec: JobSpec) -> Outcome:
        return Outcome()

    def fail_once(spec: JobSpec) -> Outcome:
        tries[spec.item] = tries.get(spec.item, 0) + 1
        return Outcome(fault=LICENCE, exit_code=9) if tries[spec.item] == 1 else Outcome()

    await domain.deploy(Flow(name=FlowName("solve"), body=JobActivity(name="solver", command="solve")))
    for _ in range(2):
        tries.clear()
        case = (await domain.start("solve", {}, who="ann", on_unhandled="hold")).id
        await pilot.run_all(fail_once)
        await domain.resume(case, who="ann")
        await pilot.run_all(play)
        assert (await domain.case(case)).status == "completed"
    [found] = await domain.proposals()
    assert (found.kind, found.exlet, found.evidence.sure and found.evidence.sure.helped) == ("by-hand", "try-again", 2)
    await domain.adopt_proposal(found.id, IN_FORCE, who="ann")
    tries.clear()
    case = (await domain.start("solve", {}, who="ann")).id
    await pilot.run_all(fail_once)
    assert (await domain.case(case)).status == "completed"
    report = await domain.learning_report()
    assert (report.jobs, report.attempts) == (6, 6)
    assert [(each.proposal, each.cured) for each in report.saved] == [(found.id, 1)]
    [lost] = [each for each in report.lost if each.loss == "failed attempts"]
    assert (lost.flow, lost.count) == ("solve", 3)


async def test_counting_again_gives_what_was_counted_as_it_happened(taught: Server) -> None:
    # LE-3
    domain = Domain(taught)
    pilot = HandPilot(domain)
    await domain.deploy(Flow(name=FlowName("solve"), body=JobActivity(name="solver", command="solve", retries=2)))
    await domain.learning_report()
    case = (await domain.start("solve", {}, who="ann")).id
    await pilot.run_all(lambda spec: Outcome(fault=LICENCE, exit_code=9))
    assert (await domain.case(case)).status == "failed"
    counted = await domain.learning_report()
    assert (counted.jobs, counted.attempts) == (1, 3)
    await domain.recount_learning(who="admin")
    assert await domain.learning_report() == counted


async def test_counting_again_keeps_what_was_learned_from_cases_that_are_gone(taught: Server) -> None:
    # LE-3
    domain = await remember(taught, mended_by_hand(range(6)))
    [before] = await domain.proposals()
    gone = [Delete("decision", each.id, each.version) async for each in taught.store.scan("decision")]
    await taught.store.write(gone[:5])
    assert (await domain.recount_learning(who="admin")).decisions == 1
    [after] = await domain.proposals()
    assert (after.id, after.evidence.failures) == (before.id, before.evidence.failures)


class FailingStore(MemoryStore):
    """Refuses to read or write the counts of failures, if asked to."""

    fails_to: str = ""

    async def get(self, kind: str, id: str) -> StoredDocument | None:
        if self.fails_to == "read" and kind == GROUP_KIND:
            raise StoreUnavailable("the store is away")
        return await super().get(kind, id)

    async def write(self, writes: Sequence[Write]) -> list[WriteDone | WriteConflict]:
        if self.fails_to == "write" and any(isinstance(each, Put) and each.kind == GROUP_KIND for each in writes):
            raise StoreUnavailable("the store is away")
        return await super().write(writes)


async def test_counts_that_a_failing_store_has_not_taken_are_added_later(tmp_path: Path) -> None:
    # LE-3
    store = FailingStore()
    server = server_over(store, tmp_path)
    await server.open()
    domain, learning = Domain(server), server.runtime.learning
    pilot = HandPilot(domain)
    await domain.deploy(Flow(name=FlowName("solve"), body=JobActivity(name="solver", command="solve", retries=2)))
    await learning.look()
    await domain.start("solve", {}, who="ann")
    await pilot.run_all(lambda spec: Outcome(fault=LICENCE, exit_code=9))
    store.fails_to = "read"
    with pytest.raises(StoreUnavailable):
        await domain.learning_report()
    store.fails_to = ""
    report = await domain.learning_report()
    assert (report.jobs, report.attempts) == (1, 3)
    assert sum(each.count for each in await StatisticsStore(store).groups()) == 3
    await server.close()


async def test_what_may_have_been_written_as_the_store_failed_is_not_added_again() -> None:
    # LE-3
    store, counter = FailingStore(), FailureCounter(lambda job: "")
    await store.open()
    for number, message in enumerate(("no licence left", "disk full")):
        counter.count_failure(learned(failure_of(number, message=message), "unhandled"))
    groups, _ = counter.take()
    store.fails_to = "write"
    with pytest.raises(StoreUnavailable):
        await StatisticsStore(store).add_groups(groups)
    assert len(groups) == 1, "that which was not tried"
    store.fails_to = ""
    await StatisticsStore(store).add_groups(groups)
    assert (groups, [each.count for each in await StatisticsStore(store).groups()]) == ([], [1])
    await store.close()


async def test_the_context_of_a_failure_tells_how_likely_the_same_again_succeeds(taught: Server) -> None:
    # LE-1
    domain = await remember(
        taught, [failure_of(n, flow="solve", outcome="failed", exlet="later", by_hand=True) for n in range(25)]
    )
    pilot = HandPilot(domain)
    await domain.deploy(Flow(name=FlowName("solve"), body=JobActivity(name="solver", command="solve")))
    case = (await domain.start("solve", {}, who="ann")).id
    await pilot.run_all(lambda spec: Outcome(fault=LICENCE, exit_code=9))
    [decision] = await taught.runtime.exceptions.decisions.of_case(case)
    fault = decision.context["fault"]
    assert (fault["retry_tries"], fault["retry_helped"]) == (25, 0)
    assert fault["retry_success"] < 0.05


async def test_an_unknown_proposal_is_told_with_where_to_look(taught: Server) -> None:
    with pytest.raises(NotFound, match="mendflow proposals --all"):
        await Domain(taught).proposal("beef")


class CountingStore(MemoryStore):
    """Counts what learning asks for."""

    reads = 0

    async def scan(self, kind: str, prefix: str = "") -> AsyncIterator[StoredDocument]:
        self.reads += kind in (GROUP_KIND, PROPOSAL_KIND)
        async for found in super().scan(kind, prefix):
            yield found


async def test_a_server_where_nothing_has_happened_since_it_looked_reads_nothing(tmp_path: Path) -> None:
    # LE-1: learning costs nothing where nothing fails
    store = CountingStore()
    server = server_over(store, tmp_path, look_ms=10)
    await server.open()
    try:
        domain = Domain(server)
        await until_quiet(store)
        await domain.deploy(Flow(name=FlowName("night"), body=JobActivity(name="align", command="true")))
        await domain.start("night", {}, who="me")
        pilot, before = HandPilot(domain), store.reads
        await pilot.sync(want=1)
        await pilot.exchange({"align": Outcome(fault=LICENCE)})
        await until_quiet(store)
        assert store.reads > before
        before = store.reads
        await domain.put_learning_settings(LearningSettings(failures_min=7), who="admin")
        await until_quiet(store)
        assert store.reads > before
    finally:
        await server.close()


class HeldUpStore(MemoryStore):
    """Writes what jobs need when it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.let = asyncio.Event(), asyncio.Event()

    async def write(self, writes: Sequence[Write]) -> list[WriteDone | WriteConflict]:
        if any(isinstance(each, Put) and each.kind == SIZE_KIND for each in writes):
            self.asked.set()
            await self.let.wait()
        return await super().write(writes)


async def test_what_is_being_written_of_sizes_is_told_too(tmp_path: Path) -> None:
    # LE-2
    store = HeldUpStore()
    server = server_over(store, tmp_path)
    await server.open()
    domain, pilot = Domain(server), HandPilot(Domain(server))
    await domain.deploy(Flow(name=FlowName("solve"), body=JobActivity(name="solver", command="solve")))
    await domain.start("solve", {}, who="ann")
    await pilot.run_all(lambda spec: Outcome(measures=Measurements(peak_bytes=1_000_000, ran_ms=1_000)))
    writing = asyncio.ensure_future(server.runtime.sizes.merge())
    await store.asked.wait()
    telling = asyncio.ensure_future(domain.sizes())
    await asyncio.wait([telling], timeout=0.1)
    store.let.set()
    assert [view.jobs for view in await telling] == [1]
    await writing
    await server.close()


async def until_quiet(store: CountingStore) -> None:
    """Ten looks, and nothing was read."""
    for _ in range(100):
        before = store.reads
        await asyncio.sleep(0.1)
        if store.reads == before:
            return
    raise AssertionError("it reads again and again")


def test_what_could_not_be_stored_is_counted_with_what_came_meanwhile() -> None:
    # LE-1: several servers add to the same counts
    def failed(number: int) -> LearnedFailure:
        return learned(failure_of(number), "unhandled")

    counter = FailureCounter(lambda job: "night")
    counter.count_failure(failed(1))
    groups, usage = counter.take()
    counter.count_failure(failed(2))
    counter.put_back(groups, usage)
    [group] = counter.groups.values()
    assert (group.count, [each.id for each in group.samples]) == (2, [failed(1).id, failed(2).id])
