"""Long texts are read beside the server, and give what they would give within it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mendflow.core.expressions.work_budget import LongWork
from mendflow.core.model.errors import BadFlow, BadRules, InvalidRequest
from mendflow.core.model.flow import Flow
from mendflow.core.model.repair import ExceptionType
from mendflow.core.model.rule_views import EvaluationRequest
from mendflow.core.model.rules import Rule, RuleSet, RuleTree
from mendflow.formats import flow_texts
from mendflow.formats.rules import xrs_texts
from mendflow.services.api.domain import Domain
from mendflow.services.base.clock import SystemClock
from mendflow.services.base.long_reads import LONG_CHARS, LongReads
from mendflow.services.base.reading_cost import tell_cost_of_reading
from mendflow.services.base.reading_tasks import JobText
from mendflow.services.messaging.ports.jobs import JobsPort
from mendflow.services.recovery.rules.trial_evaluation import evaluated
from mendflow.services.runtime.server import Server
from mendflow.services.runtime.settings import ServerSettings
from mendflow.stores.files import FolderFileStore
from mendflow.stores.memory import MemoryStore
from mendflow.wiring import read_job

JSDL = "http://schemas.ggf.org/jsdl/2005/11/jsdl"
POSIX = f"{JSDL}-posix"
SWEEP = "http://schemas.ogf.org/jsdl/2009/03/sweep"


def sweep(jobs: int) -> str:
    return (
        f'<JobDefinition xmlns="{JSDL}" xmlns:j="{JSDL}"><JobDescription><JobIdentification><JobName>n</JobName>'
        f'</JobIdentification><Application><POSIXApplication xmlns="{POSIX}"><Executable>/bin/true</Executable>'
        f'</POSIXApplication></Application></JobDescription><Sweep xmlns="{SWEEP}"><Assignment><DocumentNode>'
        f'<NamespaceBinding ns="{JSDL}" prefix="j"/><Match>//j:JobName</Match></DocumentNode>'
        f'<LoopInteger xmlns="{SWEEP}/functions" start="1" end="{jobs}"/></Assignment></Sweep></JobDefinition>'
    )


@pytest.fixture
async def domain(tmp_path: Path) -> AsyncIterator[Domain]:
    files, settings = FolderFileStore(tmp_path / "files"), ServerSettings(long_steps_aside=True)
    server = Server(store=MemoryStore(), file_store=files, clock=SystemClock(), settings=settings, version="0")
    await server.open()
    files.open()
    yield Domain(server, flow_texts=flow_texts, rule_files=xrs_texts)
    await server.close()


@pytest.fixture
async def reads() -> AsyncIterator[LongReads]:
    reads = LongReads(aside=True)
    yield reads
    await reads.stop()


async def test_a_long_flow_file_is_checked_beside_the_server(domain: Domain) -> None:  # SE-3
    costs = list[float]()
    before = tell_cost_of_reading(costs.append)
    text = "jobs:\n" + "".join(f"  j{number}: {{run: echo {number}}}\n" for number in range(1000))
    told = await domain.check_flow(text, "f.yaml")
    tell_cost_of_reading(before)
    assert len(text) > LONG_CHARS and domain._server.long_reads.pid is not None and sum(costs) > 0
    assert told == flow_texts.check(text, "f.yaml") and told.graph is not None
    wrong = await domain.check_flow(text + "  x: {rum: 1}\n", "f.yaml")
    assert not wrong.ok and wrong.problems[0].line == 1002
    with pytest.raises(InvalidRequest) as refused:
        await domain.check_flow(text, "f.py")
    assert refused.value.fields == {"field": "name"}


async def test_a_short_one_starts_no_process(domain: Domain) -> None:  # SE-3
    assert (await domain.check_flow("jobs: {a: {run: echo hi}}", "f.yaml")).ok
    assert domain._server.long_reads.pid is None


async def test_a_long_file_of_rules_is_read_beside_the_server(domain: Domain) -> None:  # SE-3
    tree = RuleTree({1: Rule(id=1, condition="data.n == 1", note="n" * LONG_CHARS)}, 1)
    rules = RuleSet(name="f", trees={ExceptionType.ABORT: {"a": tree}})
    text = xrs_texts.write(rules).text
    assert await domain.read_xrs(text) == xrs_texts.read(text, "", {})
    assert domain._server.long_reads.pid is not None
    with pytest.raises(BadRules) as refused:
        await domain.read_xrs("<nothing" + " " * LONG_CHARS)
    assert refused.value.problems


async def test_rules_are_tried_out_on_much_data_beside_the_server(domain: Domain) -> None:  # SE-3
    tree = RuleTree({1: Rule(id=1, condition="data.rows.exists(r, r.n == 499)", exlet="")}, 1)
    rules = RuleSet(name="f", trees={ExceptionType.ABORT: {"a": tree}})
    context = {"data": {"rows": [{"n": number, "text": "x" * 200} for number in range(500)]}}
    wish = EvaluationRequest(rules=rules, type=ExceptionType.ABORT, task="a", context=context, only=True)
    told = await domain.evaluate_rules(wish)
    assert domain._server.long_reads.pid is not None
    assert told == evaluated([rules], ExceptionType.ABORT, "a", context) and told.trail[0].held


async def test_a_short_description_of_many_jobs_is_read_beside_the_server(reads: LongReads) -> None:  # SE-3
    with pytest.raises(LongWork):
        read_job(sweep(1000), None, 2000)
    port = JobsPort(None, None, read_job, reads)  # type: ignore[arg-type]  # only what reads descriptions
    few = await port._read_flow(sweep(3), None)
    assert reads.pid is None and few == read_job(sweep(3), None)
    many = await port._read_flow(sweep(1000), None)
    assert reads.pid is not None and many == read_job(sweep(1000), None)
    with pytest.raises(BadFlow, match="at most 10,000"):
        await reads.do_aside(JobText(sweep(20_000), None), Flow)
