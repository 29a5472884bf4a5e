"""What belongs to a project is for those who have a role in it."""

import asyncio
import gzip
from collections.abc import Awaitable
from pathlib import Path

import pytest

from mendflow.client import Client
from mendflow.core.model.errors import Conflict, Forbidden, InvalidRequest, NotFound, RequestError
from mendflow.core.model.flow import Call, Flow, JobActivity, PrimitiveStep
from mendflow.core.model.ids import FlowName, ItemId
from mendflow.core.model.jobs import JobSpec
from mendflow.core.model.named_limits import LimitCount
from mendflow.core.model.principals import Principal
from mendflow.core.model.repair import Primitive
from mendflow.core.model.repair_views import DecisionQuery, RepairRequest
from mendflow.core.model.rules import RuleSet
from mendflow.core.model.schedules import ScheduleSpec
from mendflow.core.model.secrets import SecretUse, SecretValue
from mendflow.core.model.views import CaseQuery, JobQuery
from mendflow.core.results.result_key import result_key
from mendflow.server.runner import HttpServer
from mendflow.services.api.project_lookup import ProjectLookup
from mendflow.stores.contract import StoredDocument
from tests.server.conftest import DomainUnderTest, Serving
from tests.server.conversation import do_jobs, job_flow, task_flow
from tests.server.people import As, KnownPeople

PATIENCE_S = 200


@pytest.fixture
async def served(serving: Serving) -> HttpServer:
    return await serving(KnownPeople())


async def started(people: As, who: str = "ann", flow: Flow | None = None) -> str:
    flow = flow or job_flow(f"of-{who}")
    await people(who).deploy(flow)
    return (await people(who).start(flow.name)).id


async def refused(asked: Awaitable[object]) -> str:
    """With which code somebody is turned away."""
    try:
        await asked
    except RequestError as error:
        return str(error.code)
    return "done"


# The findings


async def test_only_administrators_change_the_default_rules(people: As) -> None:  # SE-1
    for name in ("ann", "clerk"):
        with pytest.raises(Forbidden, match="whole installation"):
            await people(name).put_rules(RuleSet(name="*"))
        with pytest.raises(Forbidden, match="whole installation"):
            await people(name).restore_rules("*", 0)
    assert (await people("root").put_rules(RuleSet(name="*"))).version == 1


async def test_a_new_version_of_a_flow_is_deployed_by_authors_of_its_project(people: As) -> None:  # SE-1
    made = await people("ann").deploy(job_flow("night"))
    assert (made.project, made.deployed_by) == ("red", "ann")
    for name, code in (("boris", "forbidden"), ("clerk", "forbidden"), ("olga", "forbidden"), ("vera", "forbidden")):
        assert await refused(people(name).deploy(task_flow("night"))) == code, name
    assert await refused(people("boris").put_rules(RuleSet(name="night"))) == "forbidden"
    later = await people("root").deploy(task_flow("night"))
    assert (later.version, later.project, later.deployed_by) == (2, "red", "root")


async def test_cases_of_another_project_are_not_there(people: As) -> None:  # SE-1
    case = await started(people)
    for name in ("boris", "clerk", "guest"):
        mine = people(name)
        asked = [mine.case(case), mine.flow_of(case), mine.history(case), mine.why(case), mine.job(f"{case}/1")]
        asked += [mine.log(f"{case}/1"), mine.find_items(case), mine.why(f"{case}:work"), mine.triggers(case)]
        assert {await refused(each) for each in asked} == {"not-found"}, name
    for name in ("boris", "clerk"):
        mine = people(name)
        steered: list[Awaitable[object]] = [
            mine.suspend(case),
            mine.resume(case),
            mine.cancel(case),
            mine.rerun(case),
            mine.send(case, "x"),
        ]
        steered += [mine.mend(case, RepairRequest(exlet="try-again")), mine.raise_trigger(case, "late")]
        steered += [mine.start("of-ann")]
        assert {await refused(each) for each in steered} == {"not-found"}, name
    with pytest.raises(NotFound) as hidden:
        await people("boris").case(case)
    with pytest.raises(NotFound) as absent:
        await people("boris").case("of-ann-000000")
    assert hidden.value.message.replace(case, "") == absent.value.message.replace("of-ann-000000", "")
    assert (await people("vera").case(case)).project == "red"


async def test_a_case_of_another_project_is_not_run_again_with_a_flow_of_ones_own(people: As) -> None:  # SE-1
    case = await started(people)
    await people("ann").cancel(case)
    assert await refused(people("boris").start_with_flow(job_flow("of-boris"), rerun_of=case)) == "not-found"
    again = await people("ann").start_with_flow(job_flow("of-ann"), rerun_of="last")
    assert again.stands_for == case


async def test_a_viewer_looks_and_an_operator_steers(people: As) -> None:  # SE-1
    case = await started(people)
    for asked in (people("vera").suspend(case), people("vera").cancel(case), people("vera").start("of-ann")):
        assert await refused(asked) == "forbidden"
    assert (await people("olga").suspend(case)).status == "suspended"
    assert (await people("olga").resume(case)).status == "running"
    assert (await people("olga").start("of-ann")).owner == "olga"
    notify = PrimitiveStep(name="n", do=Primitive.NOTIFY)
    taught = RepairRequest(flow=Flow(name=FlowName("new"), body=notify, exlet=True))
    assert await refused(people("olga").mend(case, taught)) == "forbidden"


async def test_se_1_an_operator_adds_no_deployed_flow_to_the_rules(people: As) -> None:
    case = await started(people)
    await people("ann").deploy(job_flow("tell"))
    assert await refused(people("olga").mend(case, RepairRequest(exlet="tell"))) == "forbidden"
    assert await refused(people("olga").rule_set("of-ann")) == "not-found", "there are none as before"
    await people("ann").mend(case, RepairRequest(exlet="tell"))
    assert (await people("olga").mend(case, RepairRequest(exlet="tell"))).exlet == "tell", "it is there now"


async def test_a_user_task_is_ended_only_by_its_role_whatever_way_is_taken(people: As) -> None:  # SE-1
    case = await started(people, "ann", task_flow("ask", role="reviewers"))
    [task] = await people("ann").worklist(case=case)
    force = PrimitiveStep(name="f", do=Primitive.COMPLETE, item="approve")
    exlet = Flow(name=FlowName("finish"), body=force, exlet=True)
    ways = [
        people("ann").complete(task.id),
        people("ann").claim(task.id),
        people("ann").cancel(case, "approve"),
        people("ann").mend(case, RepairRequest(flow=exlet, item="approve")),
    ]
    assert {await refused(each) for each in ways} == {"forbidden"}
    around = await people("ann").mend(case, RepairRequest(flow=exlet))  # which names the item itself
    await people("root").wait(around.exlet_case or "")
    assert (await people("ann").user_task(task.id)).state == "offered"
    assert (await people("ann").case(case)).status in ("running", "suspended")
    assert await refused(people("boris").complete(task.id)) == "not-found"
    assert (await people("rita").complete(task.id)).ended_by == "rita"


# Lists


async def test_lists_and_counts_have_what_is_of_the_callers_projects(people: As) -> None:  # SE-1
    of = {who: await started(people, who) for who in ("ann", "boris", "clerk")}
    await do_jobs(people("root"), 3, fail=True)
    for case in of.values():
        await people("root").wait(case)
    for who, case in of.items():
        mine = people(who)
        assert [each.id for each in (await mine.find_cases(CaseQuery())).rows] == [case]
        assert [each.id for each in (await mine.find_cases(CaseQuery(where="status == 'failed'", limit=1))).rows] == [
            case
        ]
        assert (await mine.count_cases()).counts == {"": 1}
        assert {each.case for each in (await mine.find_jobs(JobQuery())).rows} == {case}
        assert (await mine.count_jobs()).counts == {"": 1}
        assert [each.name for each in await mine.flows()] == [f"of-{who}"]
        assert {each.case for each in await mine.decisions(DecisionQuery())} == {case}
        [group] = await mine.failures()
        assert (group.count, (await mine.failure(group.id)).group.count) == (1, 1)
        assert (await mine.case("last")).id == case
        assert {each.case for each in await mine.alerts() if each.case} <= {case}
    assert len((await people("root").find_cases(CaseQuery())).rows) == 3


async def test_names_belong_to_whoever_made_them_first(people: As) -> None:  # SE-1
    ann, boris = people("ann"), people("boris")
    assert (await ann.set_limit("licence", LimitCount(2))).project == "red"
    assert (await ann.set_secret("key", SecretValue("s3cret-value"))).project == "red"
    await ann.deploy(job_flow("night"))
    await ann.put_schedule(ScheduleSpec(name="nightly", flow="night", cron="0 3 * * *"))
    assert await refused(boris.set_limit("licence", LimitCount(9))) == "forbidden"
    assert await refused(boris.set_secret("key", SecretValue("other-value"))) == "forbidden"
    assert await refused(boris.remove_secret("key")) == "not-found"
    assert await refused(boris.schedule("nightly")) == "not-found"
    assert await refused(boris.trigger_schedule("nightly")) == "not-found"
    assert await refused(boris.put_schedule(ScheduleSpec(name="n2", flow="night", cron="0 3 * * *"))) == "not-found"
    assert [await boris.limits(), await boris.secrets(), await boris.schedules()] == [[], [], []]
    assert [each.name for each in await ann.secrets()] == ["key"]


async def test_something_new_is_made_in_the_project_that_is_named(people: As) -> None:  # SE-1
    root = people("root")
    assert (await root.deploy(job_flow("a"), project="red")).project == "red"
    assert (await root.start("a")).project == "red"
    assert (await root.deploy(job_flow("b"))).project == "default"
    with pytest.raises(Conflict, match="another project"):
        await root.deploy(task_flow("a"), project="blue")
    assert await refused(people("ann").deploy(job_flow("c"), project="blue")) == "forbidden"
    assert await refused(people("ann").deploy(job_flow("c"), project="no name")) == "invalid"


async def test_tokens_without_projects_have_their_role_in_the_default_one(people: As) -> None:  # SE-1
    case = await started(people, "clerk")
    assert (await people("guest").case(case)).project == "default"
    assert await refused(people("guest").cancel(case)) == "forbidden"
    assert (await people("clerk").cancel(case)).status == "cancelled"


async def test_events_archives_and_numbers_tell_of_the_callers_projects(  # SE-1
    people: As, tmp_path: Path
) -> None:
    told = people("boris").events()
    first = asyncio.ensure_future(anext(told))
    hers = await started(people, "ann")
    his = await started(people, "boris")
    async with asyncio.timeout(PATIENCE_S):
        assert (await first).case == his
    await told.aclose()
    assert await refused(_archived(people("boris"), [hers], tmp_path / "hers")) == "not-found"
    assert hers.encode() not in await _archived(people("boris"), [his], tmp_path / "his")
    [stats] = await people("boris").stats()
    assert stats.cases_started == {"of-boris": 1}
    assert (await people("root").stats())[0].cases_started == {"of-ann": 1, "of-boris": 1}


async def _archived(client: Client, cases: list[str], path: Path) -> bytes:
    await client.export(path, cases)
    return gzip.decompress(await asyncio.to_thread(path.read_bytes))


async def test_jobs_get_secrets_of_their_own_project_only(people: As) -> None:  # SE-1
    await people("ann").set_secret("key", SecretValue("a-secret-value"))
    uses = JobActivity(name="work", command="true", secrets=(SecretUse(name="key", variable="KEY"),))
    for who in ("ann", "boris"):
        case = await started(people, who, Flow(name=FlowName(f"by-{who}"), body=uses))
        if who == "ann":
            await do_jobs(people("root"), 1)
            assert (await people("ann").wait(case)).status == "completed"
        else:
            synced = asyncio.ensure_future(do_jobs(people("root"), 1))
            ended = await people("boris").wait(case)
            synced.cancel()
            assert ended.status == "failed" and ended.fault is not None
            assert "project blue has no secret key" in ended.fault.message


async def test_a_flow_calls_flows_of_its_own_project(people: As) -> None:  # SE-1
    await people("ann").deploy(job_flow("library"))
    calls = Flow(name=FlowName("outer"), body=Call(name="inner", flow="library"))
    case = await started(people, "boris", calls)
    ended = await people("boris").wait(case)
    assert ended.status == "failed" and ended.fault is not None
    assert "no flow 'library' here" in ended.fault.message


async def test_results_are_used_again_within_a_project(people: As) -> None:  # SE-1
    assert result_key(JobSpec(item=ItemId("a"), command="x")) != result_key(
        JobSpec(item=ItemId("a"), command="x", project="red")
    )
    for who in ("ann", "boris"):
        await started(people, who)
    await do_jobs(people("root"), 2)
    for who in ("ann", "boris"):
        await people(who).wait("last")
        assert {each.flow for each in await people(who).results()} == {f"of-{who}"}


async def test_the_gate_reads_nothing_for_a_live_case_and_reads_another_once(  # SE-1
    people: As, domain: DomainUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = await started(people)
    read: list[str] = []
    store = domain._server.store
    get = store.get

    async def counted(kind: str, id: str) -> StoredDocument | None:
        read.append(id)
        return await get(kind, id)

    monkeypatch.setattr(store, "get", counted)
    await people("vera").case(case)
    assert read == []
    await do_jobs(people("root"), 1)
    await people("root").wait(case)
    domain.project_lookup = ProjectLookup(domain._server)
    read.clear()
    await people("root").case(case)
    without = len(read)
    for expected in (without + 1, without):
        read.clear()
        await people("vera").case(case)
        assert len(read) == expected


async def test_whoever_is_in_several_projects_is_told_to_name_one(serving: Serving) -> None:  # SE-2
    both = Principal("dora", frozenset({"user"}), {"red": "author", "blue": "viewer"})
    served = await serving(KnownPeople([both]))
    async with Client(served.url, token="dora") as dora:
        with pytest.raises(InvalidRequest, match=r"--project NAME.*'dora' is in blue \(viewer\), red \(author\)"):
            await dora.deploy(job_flow("new"))
        with pytest.raises(Forbidden, match=r"it is in blue \(viewer\), red \(author\)"):
            await dora.deploy(job_flow("new"), project="blue")
        assert (await dora.deploy(job_flow("new"), project="red")).project == "red"
