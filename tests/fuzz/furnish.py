"""Fills a server with a few things of each kind, so that requests about them find something alive."""

from dataclasses import dataclass
from pathlib import Path

from mendflow.client import Client
from mendflow.core.model.access_tokens import TokenRequest
from mendflow.core.model.data import LogicalFile, Replica, StorageElement
from mendflow.core.model.data_sets import DataSetSpec
from mendflow.core.model.named_limits import LimitCount
from mendflow.core.model.repair_views import DecisionQuery
from mendflow.core.model.rules import RuleSet
from mendflow.core.model.schedules import ScheduleSpec
from mendflow.core.model.secrets import SecretValue
from tests.server.conversation import SEVERAL, do_jobs, job_flow, loop_flow, task_flow


@dataclass(frozen=True)
class Furnished:
    """Names and ids of what is there, by the names that they have in paths."""

    case: list[str]
    decision: list[str]
    group: list[str]
    sha256: list[str]
    serial: tuple[str, ...] = ("1", "2", "3")
    item: tuple[str, ...] = ("work", "approve")
    engine: tuple[str, ...] = ("ode",)
    pilot: tuple[str, ...] = ("pilot-1",)
    name: tuple[str, ...] = ("one", "many", "*", "licence", "nightly", "run", "disk", "key", "default", "a/b")


async def furnish(url: str, token: str) -> Furnished:
    async with Client(url, token=token) as root:
        for flow in (job_flow("one"), loop_flow("many"), task_flow("ask")):
            await root.deploy(flow)
        await root.put_rules(RuleSet(name="one"))
        await root.set_secret("key", SecretValue("a-secret-value"))
        await root.set_limit("licence", LimitCount(1))
        await root.put_schedule(ScheduleSpec(name="nightly", flow="one", cron="0 3 * * *"))
        await root.put_data_set(DataSetSpec(name="run"))
        await root.put_element(StorageElement(name="disk", url="file:///nowhere"))
        file = LogicalFile(name="/a/b", sha256="0" * 64, bytes=1, replicas=(Replica(element="disk"),))
        await root.add_data(file)
        await root.register_engine("ode")
        await root.create_token(TokenRequest(name="somebody", roles=["reader"]))
        stored = await root.upload(Path(__file__))
        failed = (await root.start("one")).id
        await do_jobs(root, 1, fail=True)
        await root.wait(failed)
        ended = (await root.start("many", {"n": [1, {"a": None}]})).id
        await do_jobs(root, SEVERAL)
        await root.wait(ended)
        asked = (await root.start("ask")).id
        waiting = (await root.start("one")).id
        decisions = [each.id for each in await root.decisions(DecisionQuery())]
        groups = [each.id for each in await root.failures()]
        return Furnished([failed, ended, asked, waiting, "last"], decisions, groups, [stored.sha256])
