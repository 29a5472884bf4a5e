"""What conditions read beside the facts of an exception: registered, guarded, cached, and kept with the decision."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from mendflow.address_guard import PUBLIC_ONLY
from mendflow.core.model.errors import Conflict, InvalidRequest, NotFound
from mendflow.core.model.flow import Input, JobActivity
from mendflow.core.model.repair import ExceptionType, Primitive
from mendflow.core.model.rule_views import RuleCheckRequest
from mendflow.core.model.sources import SourceKind, SourceSpec
from mendflow.core.model.values import Value
from mendflow.core.rules.source_names import ANY_SOURCE, sources_in
from mendflow.server.source_reads import ServerSourceReader
from mendflow.services.base.source_reader import SourceAway, SourceRequest
from mendflow.services.runtime.server import ServerSettings
from mendflow.stores.contract import Store
from mendflow.stores.memory import MemoryStore
from tests.services.recovery.kit import FAILED, World, exlet, flow, mend, rule_set

A = JobActivity(name="a", command="true", retries=0)
STOP = exlet("stop", mend(Primitive.SUSPEND))


class ListedAnswers:
    """A reader that gives what the test says, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[SourceRequest] = []
        self.answer: Any = None

    def check(self, kind: SourceKind, address: str, query: str) -> None:
        pass

    async def read(self, request: SourceRequest) -> Value:
        self.asked.append(request)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class SourceWorld(World):
    def __init__(self, store: Store, folder: Path) -> None:
        self.reader = ListedAnswers()
        super().__init__(store, folder, ServerSettings(), source_reader=self.reader)

    async def add(self, name: str = "stock", **more: Any) -> None:
        spec = SourceSpec(name=name, kind="http", address="https://example.org/{case.data.sample}", **more)
        await self.domain.put_rule_source(spec, who="ann")

    async def fail(self, condition: str, sample: str = "s1") -> str:
        await self.put(rule_set("f", ExceptionType.ABORT, (condition, "stop"), exlets=[STOP]))
        case = await self.start(flow(A, inputs={"sample": Input()}), sample=sample)
        await self.take()
        await self.report(a=FAILED)
        return case


@pytest.fixture
async def sources(tmp_path: Path) -> AsyncIterator[SourceWorld]:
    made = SourceWorld(MemoryStore(), tmp_path)
    await made.server.open()
    yield made
    await made.server.close()


AWAY = [
    # row, what the source does, when it is away, the value that is read, whether the rule holds, what is told
    ("it answers", 3, {}, 3, True, ""),
    ("away, the condition errs", SourceAway("no connection: refused"), {}, None, False, "no connection: refused"),
    ("away, a given value", SourceAway("refused"), {"away": "value", "value": 9}, 9, True, ""),
    ("an answer that is too large", "x" * 3_000, {}, None, False, "larger than 2000 bytes"),
    ("a part of the answer", {"left": [1, 3]}, {"select": "left.1"}, 3, True, ""),
    ("no such part", {"left": []}, {"select": "right"}, None, False, "its answer has no right"),
]


@pytest.mark.parametrize(
    ("answer", "more", "value", "holds", "told"), [row[1:] for row in AWAY], ids=[r[0] for r in AWAY]
)
async def test_a_condition_reads_a_source_and_the_decision_keeps_the_value(
    sources: SourceWorld, answer: object, more: dict[str, Any], value: object, holds: bool, told: str
) -> None:  # EX-6
    sources.reader.answer = answer
    await sources.add(secret="hush", **more)
    decision = (await sources.decisions(await sources.fail("sources.stock >= 3")))[0]
    assert decision.context["sources"] == ({"stock": value} if value is not None else {})
    assert (decision.exlet == "stop", told in decision.note) == (holds, True), decision.note
    [request] = sources.reader.asked
    assert (request.secret, request.parameters) == ("hush", {"case.data.sample": "s1"})
    sources.reader.answer = 0  # a replay reads what is kept, and asks nobody
    again = await sources.runtime.exceptions.rules.judge(decision.type, "f", "a", decision.context, project="default")
    assert (again.conclusion is not None) == holds and len(sources.reader.asked) == 1


async def test_an_answer_is_used_again_while_it_is_fresh_and_only_for_the_same_question(sources: SourceWorld) -> None:
    sources.reader.answer = 1
    await sources.add(cache_ms=60_000)
    for sample in ("s1", "s1", "s2"):
        await sources.fail("sources.stock > 5", sample)
    assert [each.parameters["case.data.sample"] for each in sources.reader.asked] == ["s1", "s2"]


async def test_a_name_that_would_be_hidden_is_refused(sources: SourceWorld) -> None:
    with pytest.raises(InvalidRequest, match="sounds like a secret"):
        await sources.add("password")


async def test_only_sources_that_the_rules_read_are_asked(sources: SourceWorld) -> None:
    await sources.add()
    decision = (await sources.decisions(await sources.fail("job.sources_left > 5")))[0]
    assert decision.context["sources"] == {} and not sources.reader.asked


async def test_an_unknown_source_is_told_by_the_decision_and_by_the_check(sources: SourceWorld) -> None:
    decision = (await sources.decisions(await sources.fail("sources.stok > 1")))[0]
    assert "no source stok is registered" in decision.note
    checked = await sources.domain.check_rules(RuleCheckRequest(rules=sources.runtime.exceptions.rules.newest("f")))
    assert checked.warnings[-1] == "a rule reads sources.stok, which is not registered"
    assert (await sources.domain.rule_tasks("f")).unknown_sources == ["stok"]


async def test_a_source_is_listed_without_its_secret_tried_and_removed_when_no_rule_reads_it(
    sources: SourceWorld,
) -> None:
    await sources.add(secret="hush")
    [view] = await sources.domain.rule_sources()
    kept = await sources.store.get("source", "stock")
    assert view.has_secret and "hush" not in repr(view) and kept is not None and b"hush" not in kept.body
    case = await sources.fail("sources.stock > 1")
    sources.reader.answer = 7
    [decision] = await sources.decisions(case)
    tried = await sources.domain.try_rule_source("stock", decision.id, who="ann")
    assert (tried.ok, tried.value) == (True, 7)
    assert "case.data.sample" in (await sources.domain.try_rule_source("stock", who="ann")).message
    with pytest.raises(Conflict, match=r"rules of f read sources\.stock"):
        await sources.domain.remove_rule_source("stock", who="ann")
    await sources.put(rule_set("f", ExceptionType.ABORT, ("true", "stop"), exlets=[STOP]))
    await sources.domain.remove_rule_source("stock", who="ann")
    with pytest.raises(NotFound):
        await sources.domain.try_rule_source("stock", who="ann")


READ = [
    ("sources.a > 1", {"a"}),
    ('sources["a"].b + sources.c', {"a", "c"}),
    ("has(sources.a)", {"a"}),
    ("job.sources_left > 1 && size(job.sources) > 0", set()),
    ('"a" in sources', {ANY_SOURCE}),
]


@pytest.mark.parametrize(("condition", "names"), READ)
def test_the_sources_of_a_condition_are_found(condition: str, names: set[str]) -> None:
    assert sources_in(condition) == names


REFUSED = [
    # row, kind, address, query, what is told
    ("private address", "http", "http://10.0.0.1/x", "", "private address"),
    ("host from the data", "http", "https://{case.data.host}/x", "", "the host of an address is fixed"),
    ("password in the address", "http", "https://me:pw@example.org/", "", "give a secret instead"),
    ("command", "command", "cat /etc/hostname", "", "--allow-sources command"),
    ("file", "file", "/etc/hostname", "", "--allow-sources file"),
    ("database", "sql", "sqlite:////tmp/x.db", "select 1", "--allow-sources sql"),
]


@pytest.mark.parametrize(
    ("kind", "address", "query", "told"), [row[1:] for row in REFUSED], ids=[r[0] for r in REFUSED]
)
def test_a_server_refuses_what_it_was_not_started_for(kind: SourceKind, address: str, query: str, told: str) -> None:
    reader = ServerSourceReader(PUBLIC_ONLY, allowed=frozenset())
    with pytest.raises(InvalidRequest, match=told):
        reader.check(kind, address, query)
