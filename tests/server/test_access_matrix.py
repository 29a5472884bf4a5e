"""Every cell of the page of who may do what, tried against a server that has things of a project."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final

import aiohttp
import msgspec
import pytest

from mendflow.client import Client
from mendflow.core.model.data import LogicalFile, Replica, StorageElement
from mendflow.core.model.data_sets import DataSetSpec
from mendflow.core.model.flow import Flow
from mendflow.core.model.named_limits import LimitCount
from mendflow.core.model.principals import Principal
from mendflow.core.model.repair_views import DecisionQuery
from mendflow.core.model.rules import RuleSet
from mendflow.core.model.schedules import ScheduleSpec
from mendflow.core.model.secrets import SecretValue
from mendflow.operations.operation import ApiOperation
from mendflow.operations.table import API, OPERATIONS
from mendflow.server.runner import HttpServer
from tests.server.conftest import Serving
from tests.server.conversation import do_jobs, job_flow, task_flow
from tests.server.people import KnownPeople
from tools.access_matrix import MINE, PRINCIPALS, expected

BEFORE_THE_ROUTES: Final = {"sync", "locate", "place", "keep_many"}
HELD: Final = {"case_events", "all_events", "engine_orders"}
"""They answer when something happens."""
HARMFUL: Final = {"remove_flow", "prune", "import_archive"}
OF_ITS_OWNER: Final = {"register_engine", "engine_event", "engine_case", "engine_done"}
"""An engine is served under the token that registered it, and no other."""
MEMBER_ENGINE: Final = Principal("engine of a member", frozenset({"engine"}), {MINE: "viewer"})
"""It registers an engine in the project; the one of the column has no project, and registers in the default one."""
PATIENCE_S: Final = 200

Things = dict[str, str]


@pytest.fixture
async def served(serving: Serving) -> HttpServer:
    return await serving(KnownPeople([*(each for each in PRINCIPALS.values() if each is not None), MEMBER_ENGINE]))


@pytest.fixture
async def things(served: HttpServer) -> AsyncIterator[Things]:
    """One of each kind, in the project."""
    async with (
        Client(served.url, token="administrator", project=MINE) as root,
        Client(served.url, token="engine") as engine,
        Client(served.url, token=MEMBER_ENGINE.name, project=MINE) as member,
    ):
        await engine.register_engine("ode")
        await member.register_engine("ours")
        for flow in (job_flow("one"), task_flow("ask")):
            await root.deploy(flow)
        failed, asked = (await root.start("one")).id, (await root.start("ask")).id
        await do_jobs(root, 1, fail=True)
        await root.wait(failed)
        await root.put_rules(RuleSet(name="one"))
        await root.set_secret("key", SecretValue("a-secret-value"))
        await root.set_limit("licence", LimitCount(1))
        await root.put_schedule(ScheduleSpec(name="nightly", flow="one", cron="0 3 * * *"))
        await root.put_data_set(DataSetSpec(name="run"))
        await root.put_element(StorageElement(name="disk", url="file:///tmp"))
        file = LogicalFile(name="/a/b", sha256="0" * 64, bytes=1, replicas=(Replica(element="disk"),))
        await root.add_data(file)
        [decision, *_] = await root.decisions(DecisionQuery())
        [group, *_] = await root.failures()
        yield {"case": asked, "failed": failed, "decision": decision.id, "group": group.id}


def flow_body(flow: Flow) -> Any:
    return msgspec.to_builtins(flow)


def named(operation: ApiOperation, things: Things, who: str) -> dict[str, str]:
    """What stands in the path."""
    kind = operation.subject.kind if operation.subject is not None else ""
    names = {
        "flow": "one",
        "rules": "one",
        "secret": "key",
        "limit": "licence",
        "schedule": "nightly",
        "data set": "run",
        "logical file": "a/b",
        "project": MINE,
    }
    found = {
        "case": things["case"],
        "serial": "1",
        "name": names.get(kind, "x"),
        "item": "approve",
        "decision": things["decision"],
        "task": things["decision"],
        "group": things["group"],
        "engine": "ode" if who == "engine" or operation.name in OF_ITS_OWNER else "ours",
        "sha256": "0" * 64,
        "level": "1",
        "gathering": "g",
        "number": "1",
    }
    if operation.name in ("job", "log", "result", "requeue"):
        found["case"] = things["failed"]
    return found


def body_of(operation: ApiOperation, things: Things) -> Any:
    bodies: dict[str, Any] = {
        "start": {"flow": "one"},
        "start_with_flow": {"flow": flow_body(job_flow("one"))},
        "send": {"channel": "x"},
        "deploy": flow_body(job_flow("one")),
        "deploy_with_triggers": flow_body(job_flow("one")),
        "reject_choice": {"decision": things["decision"], "exlet": "try-again"},
        "raise_trigger": {"trigger": "late"},
        "mend": {"exlet": "try-again"},
        "add_patterns": {},
        "register_compensation": {"task": "work"},
        "add_data": {"name": "/a/b", "sha256": "0" * 64, "bytes": 1, "replicas": [{"element": "disk"}]},
        "add_replica": {"element": "disk"},
        "put_data_set": {"name": "run"},
        "add_to_set": {"files": []},
        "register_engine": {"name": "ode"},
        "engine_event": {"id": "1", "type": "abort", "case": "c", "flow": "f"},
        "engine_case": {"case": "c", "flow": "f"},
        "engine_done": {"order": "o"},
        "adopt_proposal": {},
        "dismiss_proposal": {"why": "no"},
        "set_limit": {"count": 2},
        "set_secret": {"value": "another-value"},
        "put_member": {"role": "viewer"},
        "forecast_results": {"flow": "one", "jobs": []},
        "evaluate_rules": {"rules": {"name": "new"}, "context": {}},
        "replay_rules": {"name": "one"},
        "check_rules": {},
        "check_flow": {"text": "jobs: {}"},
        "read_xrs": {"text": "<spec/>"},
        "change_rule": {"rule": 1, "type": "abort"},
        "map_tasks": {},
        "put_rules": {"rules": {"name": "one"}},
        "restore_rules": {"version": 1},
        "promote_rule": {"rule": 1},
        "retire_rule": {"rule": 1},
        "add_rule": {"condition": "true", "exlet": "try-again", "rules": "one", "type": "abort"},
        "try_rule": {"condition": "true", "exlet": "try-again", "rules": "one", "type": "abort"},
        "put_schedule": {"name": "nightly", "flow": "one", "cron": "0 3 * * *"},
        "backfill_schedule": {"from": "2026-01-01", "to": "2026-01-01"},
    }
    return bodies.get(operation.name, {} if operation.method in ("POST", "PUT") else None)


def query_of(operation: ApiOperation, things: Things) -> dict[str, str]:
    return {
        "why": {"subject": things["failed"]},
        "export": {"case": things["failed"]},
        "remove_replica": {"element": "disk"},
        "differences": {"group": things["group"]},
        "compare_cases": {"with": things["failed"]},
    }.get(operation.name, {})


async def answer(
    http: aiohttp.ClientSession, served: HttpServer, operation: ApiOperation, things: Things, who: str
) -> tuple[int, str]:
    path = operation.described_path
    for name, value in named(operation, things, who).items():
        path = path.replace(f"{{{name}}}", value.replace("/", "%2F") if name in ("decision", "task") else value)
    path = path.replace("{", "").replace("}", "")
    caller = PRINCIPALS[who]
    headers = {"Authorization": f"Bearer {caller.name}"} if caller is not None else {}
    async with (
        asyncio.timeout(PATIENCE_S),
        http.request(
            operation.method,
            f"{served.url}{API}{path}",
            headers=headers,
            params=query_of(operation, things),
            json=body_of(operation, things),
        ) as response,
    ):
        told = "" if response.content_type == "text/event-stream" else (await response.read()).decode(errors="replace")
        return response.status, told


@pytest.mark.full
@pytest.mark.parametrize("name", sorted(OPERATIONS.keys() - BEFORE_THE_ROUTES - HARMFUL))
async def test_every_cell_holds(  # SE-1
    name: str, served: HttpServer, http: aiohttp.ClientSession, things: Things
) -> None:
    operation = OPERATIONS[name]
    refusals, removed = {"401": 401, "403": 403, "404": 404}, False
    cells = {who: expected(operation, caller) for who, caller in PRINCIPALS.items()}
    if operation.subject is not None and operation.subject.kind == "proposal":
        cells = {
            who: cell for who, cell in cells.items() if cell in ("401", "403")
        }  # there is none in so small a place
    for who, cell in sorted(cells.items(), key=lambda each: each[1] not in refusals):  # first what changes nothing
        if cell not in refusals and (name in HELD or (name in OF_ITS_OWNER and who != "engine")):
            continue
        status, told = await answer(http, served, operation, things, who)
        if cell == "task":
            assert status == 403 and "for the role 'editor'" in told, f"{who}: {status} {told:.300}"
        elif cell in refusals:
            assert status == refusals[cell], f"{who}: {status} {told:.300}"
        else:
            assert status not in (401, 403, 500), f"{who}: {status} {told:.300}"
            assert "in your projects" not in told or removed, f"{who}: {told:.300}"
            removed = name.startswith("remove_")
