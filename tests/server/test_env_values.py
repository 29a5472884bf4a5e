"""Whoever may only read sees the names in the environment of jobs, and no values, in whatever answer they are."""

from collections.abc import Iterator
from typing import Any, get_args, get_type_hints

import msgspec
import pytest

from mendflow.client import Client
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import Flow, Input, JobActivity, PrimitiveStep, Sequence, UserTask
from mendflow.core.model.flow_files import FlowSource
from mendflow.core.model.ids import FlowName
from mendflow.core.model.jobs import FunctionRef
from mendflow.core.model.repair import ExceptionType, Primitive
from mendflow.core.model.repair_views import RuleSpec
from mendflow.core.model.rules import DEFAULT_RULES, Rule, RuleSet, RuleTree
from mendflow.core.model.schedules import ScheduleSpec
from mendflow.core.model.templates import ResourceTemplates
from mendflow.core.model.views import CaseQuery
from mendflow.core.recovery.patterns import FaultPattern, Patterns
from mendflow.core.recovery.redaction import REDACTED
from mendflow.operations.table import OPERATIONS
from mendflow.server.access import AccessControl, read_tokens, token_hash
from mendflow.server.runner import HttpServer
from tests.server.conftest import Serving
from tests.server.conversation import do_jobs

SECRET = "hush"
ENV = {"ARCHIVE": SECRET}
ROLES = ("admin", "user", "reader", "pilot")


@pytest.fixture
async def guarded(serving: Serving) -> HttpServer:
    return await serving(
        AccessControl(read_tokens("\n".join(f"{role} {role} {token_hash(f't-{role}')}" for role in ROLES)))
    )


def work(name: str = "work") -> JobActivity:
    return JobActivity(name=name, command="true", env=ENV)


def rules() -> RuleSet:
    """A failed job is tried again by an exlet that has a job of its own; the condition asks for the job's data."""
    again = PrimitiveStep(name="again", do=Primitive.RESUBMIT, settings={"env": ENV})
    exlet = Flow(
        name=FlowName("again"),
        exlet=True,
        inputs={"context": Input(type="map", required=True)},
        body=Sequence(name="steps", body=(work("look"), again)),
    )
    tree = RuleTree({1: Rule(id=1, condition='item.data.ARCHIVE != ""', exlet="again")}, 1)
    return RuleSet(name="shy", trees={ExceptionType.ABORT: {DEFAULT_RULES: tree}}, exlets={"again": exlet})


def larger() -> RuleSet:
    """No rule, and an exlet that answers too little memory: it can be proposed."""
    more = PrimitiveStep(name="more", do=Primitive.RESUBMIT, settings={"resources": {"memory_bytes": 2000}})
    exlet = Flow(name=FlowName("more"), exlet=True, inputs={"context": Input(type="map", required=True)}, body=more)
    return RuleSet(name="large", exlets={"more": exlet})


async def fail_for_lack_of_memory(user: Client, pilot: Client) -> None:
    job = msgspec.structs.replace(work(), resources=ResourceTemplates(memory_bytes=1000))
    await user.deploy(Flow(name=FlowName("large"), body=job))
    await user.put_rules(larger())
    for _ in range(3):
        await user.start("large")
    await do_jobs(pilot, 3, fail=True, fault=Fault(name="memoryLimit", category=Category.MEMORY, message="too large"))


async def answers(client: Client) -> dict[str, Any]:
    """All that may be asked about flows, cases, rules and failures."""
    cases = (await client.find_cases(CaseQuery())).rows
    decisions, groups = await client.decisions(), await client.failures()
    return {
        "rules": await client.rule_set("shy"),
        "cases": cases,
        "case": [await client.case(each.id) for each in cases],
        "flows": [await client.flow_of(each.id) for each in cases],
        "jobs": await client.jobs(),
        "decisions": decisions,
        "decision": [await client.decision(each.id) for each in decisions],
        "failures": [await client.failure(each.id) for each in groups],
        "patterns": await client.patterns(),
        "history": [await client.history(each.id) for each in cases],
        "proposals": await client.proposals(),
        "paths": await client.context_paths("shy"),
        "values": [await client.failure_values(each.id) for each in groups],
        "differences": [await client.differences(group=each.id) for each in groups],
    }


async def test_no_answer_about_a_failed_job_shows_a_reader_the_values_of_its_environment(guarded: HttpServer) -> None:
    async with (
        Client(guarded.url, "t-admin") as admin,
        Client(guarded.url, "t-user") as user,
        Client(guarded.url, "t-reader") as reader,
        Client(guarded.url, "t-pilot") as pilot,
    ):
        await user.deploy(Flow(name=FlowName("shy"), body=work()))
        await user.put_rules(rules())
        await admin.add_patterns(
            Patterns(repairs=(FaultPattern(name="flag", does="Again.", do=Primitive.RESUBMIT, settings={"env": ENV}),))
        )
        await fail_for_lack_of_memory(user, pilot)
        await user.start("shy")
        await do_jobs(pilot, 1, fail=True)
        [decision] = [each for each in await user.decisions() if each.flow == "shy"]
        wish = RuleSpec(condition="fault.exit_code == 3", exlet="again", decision=decision.id)
        await user.add_rule(wish)
        shown = {name for name, each in (await answers(user)).items() if SECRET in msgspec.json.encode(each).decode()}
        assert shown >= {"rules", "cases", "case", "flows", "jobs", "decision", "failures", "patterns", "proposals"}
        assert shown >= {"paths", "values"}
        for name, each in (await answers(reader)).items():
            text = msgspec.json.encode(each).decode()
            assert SECRET not in text, name
            assert "ARCHIVE" in text or name not in shown, name


KNOWN = {
    "DecisionView.context",
    "FaultPattern.settings",
    "JobActivity.env",
    "JobSpec.env",
    "PrimitiveStep.settings",
    "Proposal.cornerstone",
    "Rule.cornerstone",
}
"""Fields of answers by which the environment of jobs is reached; the test above has each of them in an answer."""


def structs_in(type: Any, seen: set[Any]) -> Iterator[Any]:
    """All structs that an answer of this type may have in it."""
    for inner in get_args(type):
        yield from structs_in(inner, seen)
    if isinstance(type, msgspec.StructMeta) and type not in seen:
        seen.add(type)
        yield type
        for each in get_type_hints(type).values():
            yield from structs_in(each, seen)


def test_all_fields_of_what_readers_may_ask_for_that_may_have_an_environment_are_known() -> None:
    """A field whose type is a struct has no names of its own: what it may have in it are the fields of that struct, and
    these are looked at like all others."""
    words = {"env", "context", "cornerstone", "settings"}
    seen: set[Any] = set()
    found = {
        f"{struct.__name__}.{name}"
        for operation in OPERATIONS.values()
        if operation.allowed.project == "viewer" and operation.is_call
        for struct in structs_in(operation.result, seen)
        for name, type in get_type_hints(struct).items()
        if name in words and not isinstance(type, msgspec.StructMeta)
    }
    assert found == KNOWN


def with_archive() -> RuleSet:
    """What failed is run again with another environment."""
    again = PrimitiveStep(name="again", do=Primitive.RESUBMIT, settings={"env": ENV})
    inputs = {"context": Input(type="map", required=True)}
    exlet = Flow(name=FlowName("again"), exlet=True, inputs=inputs, body=again)
    tree = RuleTree({1: Rule(id=1, condition="job.generation == 1", exlet="again")}, 1)
    return RuleSet(name="bare", trees={ExceptionType.ABORT: {DEFAULT_RULES: tree}}, exlets={"again": exlet})


async def test_nor_what_a_repair_has_set_where_why_tells_of_it(guarded: HttpServer) -> None:  # SE-6
    async with (
        Client(guarded.url, "t-reader") as reader,
        Client(guarded.url, "t-user") as user,
        Client(guarded.url, "t-pilot") as pilot,
    ):
        await user.deploy(Flow(name=FlowName("bare"), body=JobActivity(name="work", command="true")))
        await user.put_rules(with_archive())
        case = (await user.start("bare")).id
        await do_jobs(pilot, 1, fail=True)
        await do_jobs(pilot, 1)
        await user.wait(case)
        for subject in (case, f"{case}:work"):
            assert f"ARCHIVE={SECRET}" in " ".join((await user.why(subject)).facts)
            assert f"ARCHIVE={REDACTED}" in " ".join((await reader.why(subject)).facts)


def asks_for_secrets() -> Flow:
    inputs = {
        "api_token": Input(type="string", required=True),
        "password": Input(default="default-" + SECRET),
        "max_tokens": Input(default=5),
        "place": Input(default="here"),
    }
    return Flow(name=FlowName("asks"), inputs=inputs, body=JobActivity(name="work", command="true"))


async def test_nor_does_it_see_what_a_case_was_given_as_a_secret(guarded: HttpServer) -> None:  # SE-6
    async with (
        Client(guarded.url, "t-reader") as reader,
        Client(guarded.url, "t-user") as user,
        Client(guarded.url, "t-pilot") as pilot,
    ):
        await user.deploy(asks_for_secrets())
        given = {"api_token": f"given-{SECRET}", "place": {"password": f"inner-{SECRET}", "near": "sea"}}
        first = (await user.start("asks", given)).id
        second = (await user.start("asks", {**given, "api_token": f"other-{SECRET}"})).id
        await do_jobs(pilot, 2)
        await user.put_schedule(ScheduleSpec(name="nightly", flow="asks", cron="0 3 * * *", inputs=given))

        async def seen(client: Client) -> list[Any]:
            return [
                await client.case(first),
                (await client.find_cases(CaseQuery())).rows,
                await client.flow("asks"),
                await client.flow_of(first),
                await client.schedule("nightly"),
                await client.schedules(),
                await client.compare_cases(first, second),
            ]

        assert not [each for each in await seen(reader) if SECRET in str(each)]
        assert all(SECRET in str(each) for each in await seen(user)), "who starts cases may start one with the same"
        case = await reader.case(first)
        assert case.inputs == {"api_token": REDACTED, "place": {"password": REDACTED, "near": "sea"}}
        assert case.defaults == {"password": REDACTED, "max_tokens": 5}, "a number is no secret"
        [differs] = (await reader.compare_cases(first, second)).inputs
        assert (differs.path, differs.left, differs.right) == ("api_token", REDACTED, REDACTED)


def calls_with_secrets() -> Flow:
    given = {"api_token": "${{ inputs.api_token }}", "near": "sea"}
    work = JobActivity(
        name="work",
        function=FunctionRef(module="m", name="f"),
        args=({"password": f"inner-{SECRET}"},),
        kwargs=given,
        env=ENV,
    )
    return Flow(name=FlowName("calls"), inputs={"api_token": Input(type="string", required=True)}, body=work)


async def test_nor_does_it_see_secret_arguments_or_what_would_tell_whether_a_guess_is_right(
    guarded: HttpServer,
) -> None:  # SE-1
    async with (
        Client(guarded.url, "t-reader") as reader,
        Client(guarded.url, "t-user") as user,
        Client(guarded.url, "t-pilot") as pilot,
    ):
        await user.deploy(calls_with_secrets())
        case = (await user.start("calls", {"api_token": f"given-{SECRET}"}, cache="all")).id
        await do_jobs(pilot, 1)

        async def seen(client: Client) -> list[Any]:
            return [await client.job(f"{case}/1"), (await client.jobs())[0], await client.result(f"{case}/1")]

        for known, shown in zip(await seen(user), await seen(reader), strict=True):
            assert SECRET in str(known) and SECRET not in str(shown)
            assert known.key.isalnum() and shown.key == REDACTED, "a key is a digest of the environment, too"
        job, _, result = await seen(reader)
        hidden = {"api_token": REDACTED, "near": "sea"}
        assert (job.spec.args, job.spec.kwargs) == ([{"password": REDACTED}], hidden)
        assert result.made_from["arguments"] == [{"password": REDACTED}, hidden]
        assert [each.key for each in await reader.results()] == [REDACTED]
        assert SECRET not in str(await reader.flow("calls"))
        known_key = (await user.job(f"{case}/1")).key
        about = str([await reader.history(case), await reader.items(case), await reader.case(case)])
        assert known_key not in about and SECRET not in about


async def test_what_a_user_task_is_about_hides_secrets_too_and_its_answer_is_taken_as_it_is(serving: Serving) -> None:
    """Also for whoever has its role, but may not start cases."""
    names = {"user": "user", "reader": "reader", "clerk": "reader,staff"}
    served = await serving(
        AccessControl(
            read_tokens("\n".join(f"{name} {roles} {token_hash(f't-{name}')}" for name, roles in names.items()))
        )
    )
    data = {"api_token": "${{ inputs.api_token }}", "place": [{"password": SECRET, "near": "sea"}]}
    task = UserTask(name="look", role="staff", data=data, fields={"password": "a new one", "note": ""})
    flow = Flow(
        name=FlowName("looks"),
        inputs={"api_token": Input()},
        body=task,
        outputs={"length": "${{ size(jobs.look.outputs.password) }}"},
    )
    async with (
        Client(served.url, "t-user") as user,
        Client(served.url, "t-reader") as reader,
        Client(served.url, "t-clerk") as clerk,
    ):
        await user.deploy(flow)
        case = (await user.start("looks", {"api_token": SECRET})).id
        [offered] = await clerk.worklist(case=case)
        shown = {"api_token": REDACTED, "place": [{"password": REDACTED, "near": "sea"}]}
        views = [offered, await clerk.user_task(offered.id), await clerk.claim(offered.id)]
        assert [each.data for each in views] == [shown] * 3
        assert SECRET in str(await user.user_task(offered.id)), "who starts cases sees what they are given"
        ended = await clerk.complete(offered.id, {"password": SECRET, "note": "done"})
        assert ended.outputs == {"password": REDACTED, "note": "done"}
        assert (await user.wait(case)).outputs == {"length": len(SECRET)}, "the case has what was sent"
        for each in (reader, clerk):
            assert SECRET not in str([await each.worklist(case=case), await each.user_task(offered.id)])
            about = [await each.history(case), await each.items(case), await each.case(case), await each.why(case)]
            assert SECRET not in str(about)


async def test_nor_the_text_of_a_flow_file_which_may_have_all_of_that_in_it(guarded: HttpServer) -> None:
    source = FlowSource(file="shy.yaml", text=f"jobs: {{work: {{env: {{ARCHIVE: {SECRET}}}}}}}")
    async with Client(guarded.url, "t-user") as user, Client(guarded.url, "t-reader") as reader:
        await user.deploy(Flow(name=FlowName("shy"), body=work(), source=source))
        case = (await user.start("shy")).id
        for shown in (await user.flow_file("shy"), await user.flow_file_of(case)):
            assert (shown.file, shown.text, shown.reason) == ("shy.yaml", source.text, "")
        for hidden in (await reader.flow_file("shy"), await reader.flow_file_of(case)):
            assert (hidden.file, hidden.text) == ("shy.yaml", "") and "may start cases" in hidden.reason
