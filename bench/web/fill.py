"""A store as years of use leave it, made in seconds: one case of each kind is run for true, and what the store has of
it is written again and again, under other names and at other times.

So whatever a case has, the copies have too: documents of jobs, a journal, decisions, alerts."""

import asyncio
import random
import time
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from bench.ours import Mendflow
from mendflow import formats
from mendflow.core.model.flow import Flow, JobActivity
from mendflow.core.model.ids import FlowName
from mendflow.core.model.repair import ExceptionType
from mendflow.core.model.rules import Rule, RuleSet, RuleTree
from mendflow.services.base.cluster import CASE_KIND, JOB_KIND
from mendflow.services.cases.live_case import ITEM_KIND
from mendflow.services.recovery.rules.store import RULES_KIND, VERSION_KIND, version_id
from mendflow.stores.contract import Append, Put, Store, Write, WriteDone
from mendflow.stores.urls import store_at

BIG = "survey-big"
"""The case with very many items."""
SWEEP = "sweep"
GOOD, BAD = 3, 1
HOUR_MS = 3_600_000
SPREAD_MS = 72 * HOUR_MS
BIG_MS = 2 * HOUR_MS
WRITES = 2_000
FAILED_EVERY = 12
"""One of so many cases has failed."""
BIG_FAILED_EVERY = 1_000
SITES = ("north", "south", "east")
HOSTS = 250
OF_CASES = (CASE_KIND, JOB_KIND, ITEM_KIND, "decision")
OF_FLOWS = ("flow", "flow-version")
_encode = msgspec.json.Encoder().encode
T = TypeVar("T")


class Amounts(NamedTuple):
    items: int
    cases: int
    rules: int
    pilots: int


class Template(NamedTuple):
    """All that a store has of one case."""

    case: str
    documents: dict[str, list[dict[str, Any]]]
    journal: list[dict[str, Any]]


FLOW = """
name: sweep
inputs: {jobs: {type: number}, bad: {type: number, default: -1}}
jobs:
  prepare: {run: echo preparing}
  measure:
    needs: prepare
    for-each: {field: "${{ range(int(inputs.jobs)) }}"}
    run: |
      echo measuring ${{ field }}
      if [ "${{ field }}" = "${{ inputs.bad }}" ]; then echo "ERROR: no stars in field ${{ field }}"; exit 4; fi
    retries: 0
  report: {needs: measure, run: echo reporting}
"""


class Templates(Mendflow):
    """A server that runs the cases of which the copies are made."""

    def made(self) -> tuple[Template, Template]:
        path = self.folder / "sweep.yaml"
        path.write_text(FLOW)
        self.client.deploy(formats.load(path))
        good = self.client.wait(self.client.start(SWEEP, {"jobs": GOOD}).id)
        bad = self.client.wait(self.client.start(SWEEP, {"jobs": GOOD, "bad": BAD}).id)
        assert (good.status, bad.status) == ("completed", "failed"), (good, bad)
        time.sleep(1)  # until what is written after the end is written
        self.server.terminate()
        self.server.wait()
        return asyncio.run(_read(self.folder / "data", str(good.id), str(bad.id)))


async def _read(data: Path, good: str, bad: str) -> tuple[Template, Template]:
    store = store_at("", data).store
    await store.open()
    try:
        return await _template(store, good), await _template(store, bad)
    finally:
        await store.close()


async def _template(store: Store, case: str) -> Template:
    found: dict[str, list[dict[str, Any]]] = {}
    for kind in (*OF_CASES, *OF_FLOWS):
        async for document in store.scan(kind):
            if kind in OF_FLOWS or case.encode() in document.body:
                found.setdefault(kind, []).append(
                    {"": document.id.replace(case, "CASE"), **msgspec.json.decode(document.body)}
                )
    journal = [msgspec.json.decode(entry) for entry in await store.read(f"case/{case}")]
    return Template(case, found, journal)


def _moved(value: Any, case: str, name: str, shift: int) -> Any:
    """The same value of another case, so many milliseconds later."""
    if isinstance(value, str):
        return value.replace(case, name)
    if isinstance(value, list):
        return [_moved(each, case, name, shift) for each in value]
    if isinstance(value, dict):
        return {key: _moved(each, case, name, shift) for key, each in value.items()}
    if isinstance(value, int) and value > 10**12:
        return value + shift
    return value


def copies(template: Template, name: str, shift: int, kinds: Iterable[str]) -> Iterator[Write]:
    """All of a case again, under another name."""
    for kind in kinds:
        for document in template.documents.get(kind, ()):
            moved = _moved(document, template.case, name, shift)
            yield Put(kind, moved.pop("").replace("CASE", name), _encode(moved), 0)
    yield Append(f"case/{name}", [_encode(_moved(each, template.case, name, shift)) for each in template.journal], 0)


def big_case(template: Template, items: int, now: int, pilots: int) -> Iterator[Write]:
    """A case of so many items, made of one that has few."""
    chance, began = random.Random(1), now - 3 * HOUR_MS
    old = template.documents[CASE_KIND][0]
    shift = began - int(old["started_at"])
    jobs = {each["spec"]["item"]: each for each in template.documents[JOB_KIND]}
    first, good, bad = jobs["prepare"], jobs["measure[0]"], jobs[f"measure[{BAD}]"]
    facts = {each["fact"].get("serial", 0): each for each in template.journal}
    serials = {item: int(each["id"].rpartition("/")[2]) for item, each in jobs.items()}
    yield from _one(_moved(first, template.case, BIG, shift))
    for note in template.documents[ITEM_KIND]:  # what was skipped
        moved = _moved(note, template.case, BIG, shift) | {"place": items + 1}
        yield Put(ITEM_KIND, moved.pop("").replace("CASE", BIG), _encode(moved), 0)
    entries = [
        _moved(facts[0], template.case, BIG, shift),
        _moved(facts[serials["prepare"]], template.case, BIG, shift),
    ]
    entries[0]["fact"] = {**entries[0]["fact"], "inputs": {"jobs": items - 1, "bad": -1}}
    failed, ends = 0, list[dict[str, Any]]()
    for number in range(items - 1):
        is_bad = number % BIG_FAILED_EVERY == BIG_FAILED_EVERY - 1
        failed += is_bad
        model, item = (bad, f"measure[{BAD}]") if is_bad else (good, "measure[0]")
        serial, waited = number + 2, int(BIG_MS * number / items)
        ran = chance.randrange(2_000, 90_000)
        moved = _moved(model, template.case, BIG, shift)
        granted = began + 1_000 + waited
        pilot = number % pilots
        attempt = {**moved["history"][0], "pilot": f"pilot-{pilot:03}", "host": f"node{pilot % HOSTS:03}"}
        attempt |= {"granted_at": granted, "ended_at": granted + ran}
        attempt["measures"] = {
            **attempt["measures"],
            "started_at": granted + 200,
            "ended_at": granted + ran,
            "ran_ms": ran,
        }
        moved |= {"": f"CASE/{serial}", "id": f"{BIG}/{serial}", "created_at": began + 900, "available_at": began + 900}
        moved |= {"finished_at": granted + ran, "history": [attempt], "key": ""}
        moved["spec"] = {**moved["spec"], "item": f"measure[{number}]", "element": str(number)}
        yield from _one(moved)
        fact = facts[serials[item]]
        ends.append({"at": granted + ran, "fact": {**fact["fact"], "serial": serial}})
    ends.sort(key=lambda each: each["at"])
    entries += [_moved(each, template.case, BIG, 0) for each in ends]
    for at, part in enumerate(_parts([_encode(each) for each in entries], WRITES)):
        yield Append(f"case/{BIG}", part, at * WRITES)
    document = _moved(old, template.case, BIG, shift)
    document["ended_at"], document["serials"] = ends[-1]["at"], items
    for count in document["counts"]:
        if count["name"] == "measure":
            count |= {"done": items - 1 - failed, "failed": failed}
    document["inputs"] = {"jobs": items - 1}
    document.pop("")
    yield Put(CASE_KIND, BIG, _encode(document), 0)


def _one(document: dict[str, Any]) -> Iterator[Write]:
    yield Put(JOB_KIND, document.pop("").replace("CASE", BIG), _encode(document), 0)


def rule_set(template: Template, count: int, now: int) -> RuleSet:
    """Rules as they are taught: rows of alternatives with exceptions below them, each with the context of the failure
    that it was made for."""
    context = template.documents["decision"][0]["context"]
    rules: dict[int, Rule] = {0: Rule(id=0, condition="true", on_true=1 if count > 1 else None)}
    for id in range(1, count):
        is_exception = id % 5 != 1
        rules[id] = Rule(
            id=id,
            condition=f'job.exit_code == {id % 256} && fault.message.contains("field {id}") && job.attempts < 3',
            exlet="" if is_exception and id % 5 == 2 else f"exlet-{id % 50}",
            on_true=id + 1 if id % 5 and id + 1 < count else None,
            on_false=(id + 5 if id + 5 < count else None) if not is_exception else None,
            author=f"person-{id % 20}",
            at=now - id * 60_000,
            note=f"seen in field {id}, where the detector had no stars",
            cornerstone=_moved(context, template.case, f"sweep-{id:06}", 0),
            passive=id % 40 == 0,
        )
    exlets = {f"exlet-{number}": Flow(name=FlowName(f"exlet-{number}"), body=_repair()) for number in range(50)}
    trees = {ExceptionType.ABORT: {"measure": RuleTree(rules)}}
    return RuleSet(name=SWEEP, version=1, trees=trees, exlets=exlets, author="person-1", note="as taught", at=now)


def _repair() -> JobActivity:
    return JobActivity(name="mend", command="true")


async def fill(data: Path, amounts: Amounts, templates: tuple[Template, Template]) -> float:
    """Seconds to write it all."""
    good, bad = templates
    now, began = int(time.time() * 1000), time.perf_counter()
    store = store_at("", data).store
    await store.open()
    try:
        await _write(store, _cases(good, bad, amounts.cases - 1, now))
        await _write(store, big_case(bad, amounts.items, now, amounts.pilots))
        rules = rule_set(bad, amounts.rules, now)
        body = _encode(rules)
        await _write(store, [Put(RULES_KIND, SWEEP, body, 0), Put(VERSION_KIND, version_id(SWEEP, 1), body, 0)])
    finally:
        await store.close()
    return time.perf_counter() - began


def _cases(good: Template, bad: Template, count: int, now: int) -> Iterator[Write]:
    for number in range(count):
        template = bad if number % FAILED_EVERY == 0 else good
        start = now - int(SPREAD_MS * (count - number) / count)
        shift = start - int(template.documents[CASE_KIND][0]["started_at"])
        yield from copies(template, f"sweep-{number:06}", shift, (*OF_CASES, *(OF_FLOWS if not number else ())))


def _parts(all_of_them: Iterable[T], size: int) -> Iterator[list[T]]:
    left = iter(all_of_them)
    while part := list(islice(left, size)):
        yield part


async def _write(store: Store, writes: Iterable[Write]) -> None:
    for part in _parts(writes, WRITES):
        for done in await store.write(part):
            assert isinstance(done, WriteDone), done
