"""Every operation, asked by people of other projects with the ids and names of one: none tells what is in it, nor that
there is such a thing. An operation that is added is asked here too, with what `_asked` makes of its arguments."""

import asyncio
import gzip
import hashlib
import re
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import aiohttp
import msgspec
import pytest

from mendflow.client import Client
from mendflow.core.model.data import LogicalFile, Replica, StorageElement
from mendflow.core.model.data_sets import DataSetSpec
from mendflow.core.model.errors import NotFound
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import Call, Flow, Input, JobActivity, Parallel, UserTask
from mendflow.core.model.ids import CaseId, FlowName, ItemId
from mendflow.core.model.named_limits import LimitCount
from mendflow.core.model.principals import Principal
from mendflow.core.model.repair import ExceptionEvent, ExceptionType
from mendflow.core.model.rules import Rule, RuleSet, RuleTree
from mendflow.core.model.schedules import ScheduleSpec
from mendflow.core.model.secrets import SecretValue
from mendflow.operations.operation import ApiOperation
from mendflow.operations.table import API, OPERATIONS
from mendflow.server.runner import HttpServer
from tests.patience import PATIENCE_S
from tests.server.conftest import Serving
from tests.server.conversation import do_jobs
from tests.server.people import PEOPLE, As, KnownPeople
from tests.services.recovery.kit import exlet

ENGINE: Final = Principal("engine-of-red", frozenset({"engine"}), {"red": "author"})
CAROL: Final = Principal("carol", frozenset({"user"}), {"green": "admin"})
"""Nobody has made anything in her project."""
CRIMSON, PHANTOM = "crimson", "phantom"
"""What things of red are called, and what things that nobody has are."""
VERMILION: Final = "vermilion"
"""This is in whatever things of red hold, and in nothing else."""
COBALT: Final = "cobalt"
"""This is in what blue has."""
ITEM: Final = f"{VERMILION}-work"
"""It is asked for by name."""
INSIDE: Final = [f"{VERMILION}-{each}" for each in ("command", "env", "input", "value", "default", "at-3")]
HELD: Final = {"all_events", "engine_orders"}
"""They answer when something happens."""
DISTURBING: Final = {"sign_in", "sign_out", "sync", "locate", "place", "keep_many"}
"""They are about whoever asks, or are for pilots."""
ADDRESS: Final = re.compile(r"\{(\w+)\}")
VARYING: Final = re.compile(r"\b[0-9a-f]{6,}\b|\d+")


class Red(NamedTuple):
    """Ids in red, by the names that arguments have."""

    ids: dict[str, str]
    cases: list[str]


@pytest.fixture
async def served(serving: Serving) -> HttpServer:
    return await serving(KnownPeople([*PEOPLE.values(), ENGINE, CAROL]))


def crimson() -> Flow:
    work = JobActivity(name=ITEM, command=f"{VERMILION}-command", env={"OF": f"{VERMILION}-env"})
    return Flow(
        name=FlowName(CRIMSON),
        body=work,
        description=f"{VERMILION} flow",
        inputs={"of": Input(type="string", default=f"{VERMILION}-default")},
    )


def asks() -> Flow:
    return Flow(name=FlowName("crimson-ask"), body=UserTask(name=f"{VERMILION}-ask", role="editor", title=VERMILION))


def rules() -> RuleSet:
    tree = RuleTree({1: Rule(id=1, condition=f"fault.message == '{VERMILION}'", exlet="look")}, 1)
    return RuleSet(name=CRIMSON, trees={ExceptionType.ABORT: {"*": tree}}, exlets={"look": exlet("look")})


async def _failed(people: As, case: str, message: str) -> None:
    fault = Fault(name="exit", category=Category.JOB, message=message, exit_code=3)
    await do_jobs(people("root"), 1, fail=True, fault=fault)
    await people("root").wait(case)


@pytest.fixture
async def red(people: As, served: HttpServer, tmp_path: Path) -> AsyncIterator[Red]:
    ann, root = people("ann"), people("root")
    for flow in (crimson(), asks()):
        await ann.deploy(flow)
    await ann.put_rules(rules())
    failed = (await ann.start(CRIMSON, {"of": f"{VERMILION}-input"}, key="crimson-key")).id
    await _failed(people, failed, f"the {VERMILION} disk is full")
    asked = (await ann.start("crimson-ask")).id
    await ann.set_secret("crimson-secret", SecretValue(f"{VERMILION}-value"))
    await ann.set_limit("crimson-limit", LimitCount(1))
    schedule = ScheduleSpec(name="crimson-nightly", flow=CRIMSON, cron="0 3 * * *", inputs={"of": f"{VERMILION}-at-3"})
    await ann.put_schedule(schedule)
    await ann.put_data_set(DataSetSpec(name="crimson-set"))
    await root.put_element(StorageElement(name="disk", url="file:///tmp"))
    content = tmp_path / f"{VERMILION}.txt"
    await asyncio.to_thread(content.write_text, VERMILION)
    stored = await ann.upload(content)
    place = (Replica(element="disk"),)
    file = LogicalFile(name="/crimson/file", sha256=stored.sha256, bytes=stored.bytes, replicas=place)
    await ann.add_data(file, project="red")
    await ann.add_to_set("crimson-set", ["/crimson/file"])
    [decision] = [each for each in await ann.decisions() if each.case == failed]
    async with Client(served.url, token=ENGINE.name) as engine:
        await engine.register_engine("crimson-engine", project="red")
        event = ExceptionEvent(
            id="crimson-event",
            type=ExceptionType.ABORT,
            case=CaseId("crimson-there"),
            flow="crimson-there",
            item=ItemId("work"),
            task="work",
            fault=Fault(name="exit", category=Category.JOB, message=f"{VERMILION} engine"),
        )
        await engine.engine_event("crimson-engine", event)
    yield Red(
        {
            "case": failed,
            "asked": asked,
            "flow": CRIMSON,
            "rules": CRIMSON,
            "secret": "crimson-secret",
            "limit": "crimson-limit",
            "schedule": "crimson-nightly",
            "data set": "crimson-set",
            "logical file": "crimson/file",
            "stored file": stored.sha256,
            "engine": "crimson-engine",
            "engine case": "crimson-engine:crimson-there",
            "decision": decision.id,
            "group": decision.group,
            "project": "red",
        },
        [failed, asked],
    )


def phantoms(ids: Mapping[str, str]) -> dict[str, str]:
    """Ids of the same shapes that nobody has."""
    made = {kind: id.replace(CRIMSON, PHANTOM) for kind, id in ids.items()}
    digests = {kind: hashlib.sha256(kind.encode()).hexdigest() for kind in ("stored file", "group")}
    return made | {kind: digests[kind][: len(made[kind])] for kind in digests} | {"project": "rod"}


def _path(operation: ApiOperation, ids: Mapping[str, str]) -> str:
    kind = operation.subject.kind if operation.subject is not None else ""
    is_task = operation.subject is not None and operation.subject.argument == "task"
    words = {
        "case": ids["asked"] if is_task and "{serial}" in operation.described_path else ids["case"],
        "serial": "1",
        "item": ITEM,
        "name": ids.get(kind, ids["flow"]),
        "decision": ids["decision"],
        "task": ids["decision"],
        "group": ids["group"],
        "engine": ids["engine"],
        "sha256": ids["stored file"],
        "level": "1",
        "gathering": "g",
        "number": "1",
        "proposal": ids["group"],
        "alert": f"failure/{ids['case']}",
        "member": "ann",
    }

    def filled(found: re.Match[str]) -> str:
        word = words.get(found[1], ids["flow"])
        return word.replace("/", "%2F") if found[1] in ("decision", "task", "alert") else word

    return ADDRESS.sub(filled, operation.described_path)


def _queries(operation: ApiOperation, ids: Mapping[str, str]) -> list[dict[str, str]]:
    """Nothing that narrows a list, and each thing that does."""
    case, flow = {"case": ids["case"]}, {"flow": ids["flow"]}
    by_name: dict[str, list[dict[str, str]]] = {
        "find_cases": [flow, {"where": f"id == '{ids['case']}'"}, {"where": f"text.contains('{VERMILION}')"}],
        "count_cases": [flow, {"by": "flow"}, {"by": "project"}],
        "find_jobs": [case, {"where": f"flow == '{ids['flow']}'"}, {"owner": "ann"}],
        "count_jobs": [case, {"by": "flow"}, {"by": "owner"}],
        "decisions": [case, {"group": ids["group"]}, {"rules": ids["rules"]}, {"case": ids["engine case"]}],
        "administration_tasks": [case, {"case": ids["engine case"]}],
        "worklist": [{"case": ids["asked"]}],
        "results": [case, flow, {"name": ITEM}],
        "sizes": [flow],
        "failures": [flow],
        "learning_report": [flow],
        "differences": [{"decision": ids["decision"]}, {"group": ids["group"]}, {"rules": ids["rules"]}],
        "data": [{"prefix": "/" + ids["logical file"]}, {"data_set": ids["data set"]}],
        "why": [
            {"subject": ids["case"]},
            {"subject": f"{ids['case']}/1"},
            {"subject": ids["schedule"]},
            {"subject": ids["engine case"]},
            {"subject": ids["engine"]},
        ],
        "compare_cases": [{"with": ids["case"]}],
        "export": [case, {"everything": "true"}, {"where": f"flow == '{ids['flow']}'"}],
        "read_file": [{"of": ids["case"]}],
        "file_size": [{"of": ids["case"]}],
        "alerts": [{"severity": "info", "every": "true"}],
        "places": [{"storage": "disk"}],
        "stats": [{"running": "10"}],
    }
    return [{}, *by_name.get(operation.name, [])]


def _body(operation: ApiOperation, ids: Mapping[str, str]) -> Any:
    flow = msgspec.to_builtins(Flow(name=FlowName(ids["flow"]), body=JobActivity(name="work", command="true")))
    chosen = {"condition": "true", "exlet": "look", "rules": ids["rules"], "type": "abort"}
    of_decision = {"condition": "true", "exlet": "look", "decision": ids["decision"]}
    named: dict[str, Any] = {
        "start": {"flow": ids["flow"]},
        "start_with_flow": {"flow": flow},
        "deploy": flow,
        "deploy_with_triggers": flow,
        "send": {"channel": "x"},
        "reject_choice": {"decision": ids["decision"], "exlet": "look"},
        "raise_trigger": {"trigger": "late"},
        "mend": {"exlet": "look", "decision": ids["decision"], "rules": ids["rules"]},
        "add_data": {"name": "/" + ids["logical file"], "sha256": "0" * 64, "bytes": 1, "replicas": []},
        "add_replica": {"element": "disk"},
        "put_data_set": {"name": ids["data set"]},
        "add_to_set": {"files": ["/" + ids["logical file"]]},
        "register_engine": {"name": ids["engine"]},
        "set_limit": {"count": 2},
        "set_secret": {"value": "another-value"},
        "put_member": {"role": "viewer"},
        "dismiss_proposal": {"why": "no"},
        "forecast_results": {"flow": ids["flow"], "jobs": [{"spec": {"item": "work", "command": "x"}}], "cache": "all"},
        "evaluate_rules": {"decision": ids["decision"], "name": ids["rules"]},
        "replay_rules": msgspec.to_builtins(msgspec.structs.replace(rules(), name=ids["rules"])),
        "check_flow": {"text": f"flow: x\njobs: {{a: {{call: {ids['flow']}}}}}"},
        "read_xrs": {"text": "<spec/>", "name": ids["rules"]},
        "change_rule": {"rule": 1, "type": "abort", "condition": "true"},
        "map_tasks": {},
        "put_rules": {"rules": {"name": ids["rules"]}},
        "restore_rules": {"version": 1},
        "promote_rule": {"rule": 1},
        "retire_rule": {"rule": 1},
        "add_rule": chosen | of_decision,
        "try_rule": chosen | of_decision,
        "put_schedule": {"name": ids["schedule"], "flow": ids["flow"], "cron": "0 3 * * *"},
        "backfill_schedule": {"from": "2026-01-01", "to": "2026-01-01"},
    }
    return named.get(operation.name, {} if operation.method in ("POST", "PUT") else None)


class Request(NamedTuple):
    method: str
    path: str
    query: dict[str, str]
    body: Any


class Answer(NamedTuple):
    status: int
    text: str


def _requests(operation: ApiOperation, ids: Mapping[str, str]) -> list[Request]:
    path, body = _path(operation, ids), _body(operation, ids)
    return [Request(operation.method, path, query, body) for query in _queries(operation, ids)]


async def _ask(http: aiohttp.ClientSession, served: HttpServer, request: Request, who: str) -> Answer:
    async with (
        asyncio.timeout(PATIENCE_S),
        http.request(
            request.method,
            f"{served.url}{API}{request.path}",
            headers={"Authorization": f"Bearer {who}"},
            params=request.query,
            json=request.body,
        ) as response,
    ):
        content = await response.read()
        if content.startswith(b"\x1f\x8b"):
            content = gzip.decompress(content)
        return Answer(response.status, content.decode(errors="replace"))


def _without_names(answer: Answer, ids: Mapping[str, str]) -> Answer:
    """What was asked with is told again in refusals, and is no news."""
    names = sorted({*ids.values(), *(quote(id, safe="") for id in ids.values())}, key=len, reverse=True)
    text = re.sub("|".join(rf"\b{re.escape(name)}\b" for name in names), "*", answer.text)
    return Answer(answer.status, VARYING.sub("N", text))


def _asked(operation: ApiOperation) -> bool:
    return operation.name not in HELD | DISTURBING


LAST_ASKED: Final = {"POST": 1, "PUT": 2, "DELETE": 3}


def _operations() -> list[ApiOperation]:
    """Those that change something come last."""
    return sorted(filter(_asked, OPERATIONS.values()), key=lambda each: (LAST_ASKED.get(each.method, 0), each.name))


def _wants_a_name(operation: ApiOperation) -> bool:
    """Whether it may be about something that is not there yet: a name that is taken is told to be."""
    return operation.subject is not None and operation.subject.may_be_new


@pytest.mark.parametrize("who", ["carol", "guest"])
async def test_se_1_a_thing_of_another_project_is_answered_as_one_that_is_not_there(
    who: str, red: Red, served: HttpServer, http: aiohttp.ClientSession
) -> None:
    """In the same words; only a name that is wanted for something new is told to be taken."""
    told: list[str] = []
    absent = phantoms(red.ids)
    for operation in _operations():
        for wanted, other in zip(_requests(operation, red.ids), _requests(operation, absent), strict=True):
            answer = await _ask(http, served, wanted, who)
            if VERMILION in answer.text.replace(ITEM, ""):
                told.append(f"{operation.name} tells what is in red: {wanted}\n  {answer}")
            if _wants_a_name(operation):
                told += [] if answer.status in (400, 403, 404) else [f"{operation.name} is done: {wanted}\n  {answer}"]
            elif wanted != other:  # else it names nothing
                shown = _without_names(answer, red.ids)
                expected = _without_names(await _ask(http, served, other, who), absent)
                told += [] if shown == expected else [f"{operation.name} {wanted}:\n  {shown}\n  {expected}"]
    assert not told, "\n".join(told)


@pytest.fixture
async def blue(people: As, red: Red) -> str:
    """A case of blue that brings along a flow which is called as one of red is, and one of a name that nobody has."""
    named = Flow(name=FlowName(CRIMSON), body=JobActivity(name=f"{COBALT}-work", command=f"{COBALT}-command"))
    free = Flow(name=FlowName("free"), body=JobActivity(name=f"{COBALT}-job", command=f"{COBALT}-command"))
    calls = (Call(name="inner", flow=CRIMSON), Call(name="other", flow="free"))
    outer = Flow(name=FlowName("outer"), body=Parallel(name="both", branches=calls), calls=(named, free))
    case = (await people("boris").start_with_flow(outer)).id
    fault = Fault(name="exit", category=Category.JOB, message=f"the {VERMILION} disk is full", exit_code=3)
    await do_jobs(people("root"), 2, fail=True, fault=fault)
    await people("root").wait(case)
    return case


@pytest.mark.parametrize(
    ("who", "inside"),
    [("boris", INSIDE), ("ann", [COBALT]), ("guest", [COBALT, *INSIDE]), ("carol", [COBALT, *INSIDE])],
)
async def test_se_1_nor_is_it_mixed_with_what_is_called_the_same(
    who: str, inside: list[str], red: Red, blue: str, served: HttpServer, http: aiohttp.ClientSession
) -> None:
    cases = [] if who == "ann" else red.cases
    cases += [] if who == "boris" else [blue]
    told: list[str] = []
    for operation in _operations():
        for wanted in _requests(operation, red.ids):
            answer = await _ask(http, served, wanted, who)
            found = [each for each in (*inside, *cases) if each in answer.text]
            if found and not (answer.status in (400, 403, 404) and set(found) <= set(cases)):
                told.append(f"{operation.name} tells {found}: {wanted}\n  {answer}")
    assert not told, "\n".join(told)


async def test_se_1_a_refusal_names_nothing_of_other_projects(
    people: As, red: Red, served: HttpServer, http: aiohttp.ClientSession
) -> None:
    """Whoever asks for what is not there, of things of one's own, is not told which there are elsewhere."""
    await people("boris").deploy(Flow(name=FlowName("own"), body=JobActivity(name="work", command="x")))
    case = (await people("boris").start("own")).id
    own = {kind: id.replace(CRIMSON, "own") for kind, id in phantoms(red.ids).items()}
    own |= {"flow": "own", "rules": "own", "case": case, "asked": case, "project": "blue"}
    told: list[str] = []
    for operation in (each for each in _operations() if each.name != "case_events"):  # it goes on with the case
        for wanted in _requests(operation, own):
            answer = await _ask(http, served, wanted, "boris")
            if answer.status >= 400 and CRIMSON in answer.text:
                told.append(f"{operation.name}: {wanted}\n  {answer}")
    async with Client(served.url, token=ENGINE.name) as engine:
        with pytest.raises(NotFound) as missing:
            await engine.engine_orders("other")
        told += [missing.value.message] if CRIMSON in missing.value.message else []
    assert not told, "\n".join(told)
