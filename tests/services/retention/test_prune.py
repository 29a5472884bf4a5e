"""Cases that are over go with all that belongs to them, and nothing goes that is referred to."""

import os
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mendflow.core.model.errors import Conflict, InvalidRequest, NotFound
from mendflow.core.model.ids import CaseId
from mendflow.core.model.retention import GRACE_MIN_MS, PruneRequest, PruneRule, PruneView, RetentionRule
from mendflow.services.retention.pruned_cases import PrunedCases, PrunedDocument
from mendflow.services.retention.pruner import Pruner
from mendflow.services.retention.service import EVERY_MS
from mendflow.stores.files import FolderFileStore
from mendflow.stores.memory import MemoryStore
from mendflow.stores.shared_files import SharedFileStore
from tests.services.retention.kit import DAY_MS, Shelf, digest_of


@pytest.fixture
async def shelf(tmp_path: Path) -> AsyncIterator[Shelf]:
    store, files = MemoryStore(), FolderFileStore(tmp_path)
    await store.open()
    files.open()
    shelf = Shelf(store, files, tmp_path)
    yield shelf
    await shelf.close()


async def test_an_old_case_goes_with_journal_jobs_results_alerts_and_files(shelf: Shelf) -> None:  # DU-6
    await shelf.keep("mine")
    await shelf.case("f-1", files=["mine"])
    await shelf.case("f-1.2", parent="f-1")
    await shelf.put("result", "key", {"job": "f-1/0", "name": "a"})
    await shelf.put("job", "f-1/7", {"id": "f-1/7", "key": "key"})
    await shelf.put("alert", "failure/f-1/1", {"id": "failure/f-1/1", "case": "f-1"})
    await shelf.put("snapshot", "f-1", {"case": "f-1"})
    view = await shelf.prune()
    assert (view.cases, view.files, view.bytes > 4) == (1, 1, True)
    assert await shelf.traces("f-1") == []
    assert await shelf.store.get("result", "key") is None
    assert await shelf.store.get("alert", "failure/f-1/1") is None
    assert await shelf.stored(["mine"]) == set()
    pruned = await shelf.retention.pruned(CaseId("f-1.2"))
    assert pruned is not None and "was pruned by me" in pruned.sentence() and "more than 10 d ago" in pruned.sentence()


async def test_a_case_that_was_named_goes_with_the_same_checks(shelf: Shelf) -> None:  # DU-6
    await shelf.case("f-1", days_ago=0.1)
    await shelf.case("f-1.2", days_ago=0.1)
    await shelf.case("f-2", cached_from=["f-3"])
    await shelf.case("f-3")
    await shelf.case("f-4", status="running")
    for case, error, told in (
        ("f-4", Conflict, "mendflow cancel f-4"),
        ("f-1.2", InvalidRequest, "name f-1"),
        ("f-9", NotFound, "there is no case"),
    ):
        with pytest.raises(error, match=told):
            await shelf.retention.prune(PruneRequest(cases=[CaseId("f-1"), CaseId(case)]), who="me")
    with pytest.raises(InvalidRequest, match="say which cases go"):
        await shelf.retention.prune(PruneRequest(), who="me")
    view = await shelf.prune_named("f-1", "f-3")
    assert [each.case for each in view.pruned_cases] == ["f-1"]
    assert [(each.case, each.reason) for each in view.spared_cases] == [("f-3", "job f-2/100 refers to it")]
    assert sorted(await shelf.cases()) == ["f-2", "f-3", "f-4"]


async def test_a_dry_run_says_what_would_go_and_removes_nothing(shelf: Shelf) -> None:  # DU-6
    await shelf.keep("mine")
    await shelf.case("f-1", files=["mine"])
    view = await shelf.prune(dry_run=True)
    assert (view.cases, view.files, [each.case for each in view.pruned_cases]) == (1, 1, ["f-1"])
    assert await shelf.cases() == ["f-1"] and await shelf.stored(["mine"]) == {"mine"}
    real = await shelf.prune()
    assert (real.cases, real.files, real.bytes) == (view.cases, view.files, view.bytes)


@pytest.mark.parametrize(
    ("kind", "document"),
    [
        ("data-set", {"files": [{"sha256": digest_of("mine")}]}),
        ("file", {"name": "a", "sha256": digest_of("mine")}),
        ("hosted-work", {"outcome": {"files": {"out": {"$file": digest_of("mine")}}}}),
        ("a-kind-of-tomorrow", {"deep": [f"kept:{digest_of('mine')}"]}),
    ],
)
async def test_a_file_that_another_document_names_stays(shelf: Shelf, kind: str, document: object) -> None:  # DU-6
    await shelf.keep("mine")
    await shelf.case("f-1", files=["mine"])
    await shelf.put(kind, "x", document)
    view = await shelf.prune()
    assert (view.cases, view.files) == (1, 0)
    assert await shelf.stored(["mine"]) == {"mine"}


async def test_a_file_that_is_named_inside_a_spilled_value_stays(shelf: Shelf) -> None:
    inner = msgspec.json.encode([{"$file": digest_of("mine")}]).decode()
    await shelf.keep("mine", inner)
    await shelf.case("f-1", files=["mine"])
    await shelf.case("g-1", days_ago=1, outputs={"$spilled": digest_of(inner)})
    assert (await shelf.prune()).cases == 1
    assert await shelf.stored(["mine", inner]) == {"mine", inner}


@pytest.mark.parametrize("spared", [False, True], ids=["of a case that is not meant", "of a case that is spared"])
async def test_nothing_goes_while_a_value_that_stays_is_damaged(shelf: Shelf, *, spared: bool) -> None:  # DU-6
    inner = msgspec.json.encode([{"$file": digest_of("mine")}]).decode()
    await shelf.keep("mine", inner)
    await shelf.case("f-1", files=["mine"])
    await shelf.case("g-1", flow="g", days_ago=20 if spared else 1, outputs={"$spilled": digest_of(inner)})
    if spared:
        await shelf.put("hosted-work", "x", {"case": "g-1"})
    assert shelf.folder is not None
    (shelf.folder / digest_of(inner)[:2] / digest_of(inner)).write_text("broken")
    with pytest.raises(AssertionError, match=r"was damaged, and is put aside .* nobody knows which files it names"):
        await shelf.prune()
    assert await shelf.cases() == ["f-1", "g-1"] and await shelf.stored(["mine"]) == {"mine"}
    if not spared:
        assert (await shelf.prune(PruneRule(flow="g"))).cases == 1, "what refers to it may go"


async def test_a_value_that_is_gone_names_nothing(shelf: Shelf) -> None:
    await shelf.keep("mine")
    await shelf.case("f-1", files=["mine"])
    await shelf.case("g-1", days_ago=1, outputs={"$spilled": digest_of("gone")})
    assert (await shelf.prune()).files == 1


@pytest.mark.parametrize(
    ("kind", "document"),
    [
        ("rules-version", {"rules": [{"cornerstone": {"case": {"id": "f-1"}}}]}),
        ("hosted-work", {"case": "f-1"}),
        ("proposal", {"evidence": {"caught_ids": ["f-1/3:1"]}}),
        ("learned-group", {"samples": ["f-1/3:1"]}),
    ],
)
async def test_a_case_that_something_depends_on_stays(shelf: Shelf, kind: str, document: object) -> None:  # DU-6
    await shelf.case("f-1")
    await shelf.put(kind, "x", document)
    view = await shelf.prune()
    assert [(each.case, each.reason) for each in view.spared_cases] == [("f-1", f"{kind} x refers to it")]
    assert await shelf.cases() == ["f-1"]


async def test_a_schedule_that_only_tells_of_a_case_does_not_keep_it(shelf: Shelf) -> None:
    await shelf.case("f-1")
    await shelf.put("schedule", "nightly", {"history": [{"case": "f-1"}]})
    assert (await shelf.prune()).cases == 1


@pytest.mark.parametrize("more", [{"status": "running"}, {"status": "suspended"}, {"posted": True}, {"void": True}])
async def test_a_case_that_is_not_over_stays(shelf: Shelf, more: dict[str, Any]) -> None:
    await shelf.case("f-1", **more)
    assert (await shelf.prune()).cases == 0


async def test_a_case_that_a_live_one_runs_again_stays_until_that_is_over(shelf: Shelf) -> None:
    await shelf.case("f-1")
    await shelf.case("f-2", status="running", rerun_of="f-1")
    view = await shelf.prune()
    assert [each.case for each in view.spared_cases] == ["f-1"]


async def test_a_tree_that_is_held_is_left_alone(shelf: Shelf) -> None:
    await shelf.case("f-1")
    shelf.homes.hold("f-1", "an unfinished decision")
    view = await shelf.prune()
    assert (view.cases, [each.reason for each in view.spared_cases]) == (0, ["something of it is still under way"])
    assert await shelf.cases() == ["f-1"] and await shelf.retention.pruned(CaseId("f-1")) is None


async def test_a_file_that_was_asked_for_a_moment_ago_goes_next_time(shelf: Shelf) -> None:  # DU-6
    await shelf.keep("mine")
    await shelf.case("f-1", files=["mine"])
    assert await shelf.files.size(digest_of("mine")) == 4
    view = await shelf.prune()
    assert (view.files, view.later_files, await shelf.stored(["mine"])) == (0, 1, {"mine"})
    shelf.hours_pass()
    await shelf.prune(PruneRule(states=["failed"]))
    assert await shelf.stored(["mine"]) == set()


async def test_what_takes_up_a_file_after_the_prune_keeps_it(shelf: Shelf) -> None:
    await shelf.keep("mine")
    await shelf.case("f-1", files=["mine"])
    await shelf.files.size(digest_of("mine"))
    await shelf.prune()
    await shelf.case("f-2", status="running", files=["mine"])
    shelf.hours_pass()
    await shelf.prune()
    assert await shelf.stored(["mine"]) == {"mine"}


async def test_a_prune_that_was_cut_short_is_finished_by_the_next(shelf: Shelf) -> None:  # DU-6
    await shelf.keep("mine")
    await shelf.case("f-1", files=["mine"])
    await shelf.case("f-1.2")
    found = await shelf.store.get("case", "f-1")
    assert found is not None
    note = PrunedDocument(
        id=CaseId("f-1"),
        flow="f",
        status="completed",
        started_at=0,
        ended_at=1,
        pruned_at=2,
        cases=[CaseId("f-1"), CaseId("f-1.2")],
        files=[digest_of("mine")],
    )
    await PrunedCases(shelf.store).put([note])
    await shelf.prune(PruneRule(states=["failed"]))
    assert await shelf.traces("f-1") == [] and await shelf.stored(["mine"]) == set()
    assert await PrunedCases(shelf.store).unfinished() == []


async def test_a_case_that_goes_on_after_a_prune_was_cut_short_stays(shelf: Shelf) -> None:
    await shelf.case("f-1", status="running")
    note = PrunedDocument(id=CaseId("f-1"), flow="f", status="failed", started_at=0, ended_at=1, pruned_at=2)
    await PrunedCases(shelf.store).put([note])
    await shelf.prune()
    assert await shelf.cases() == ["f-1"] and await shelf.retention.pruned(CaseId("f-1")) is None


async def test_a_case_that_another_runs_again_since_its_prune_was_cut_short_stays(shelf: Shelf) -> None:  # DU-6
    await shelf.keep("mine")
    await shelf.case("f-1", files=["mine"])
    await PrunedCases(shelf.store).put([_begun("f-1", files=["mine"])])
    await shelf.case("f-2", status="running", rerun_of="f-1", days_ago=0)
    view = await shelf.prune()
    assert [each.reason for each in view.spared_cases] == ["case f-2, which runs it again refers to it"]
    assert await shelf.cases() == ["f-1", "f-2"] and await shelf.retention.pruned(CaseId("f-1")) is None
    assert await shelf.stored(["mine"]) == {"mine"} and await shelf.store.length("case/f-1") == 1


async def test_what_is_left_of_a_case_whose_prune_was_cut_short_goes(shelf: Shelf) -> None:  # DU-6
    await shelf.put("job", "f-1/0", {"id": "f-1/0", "case": "f-1"})
    await PrunedCases(shelf.store).put([_begun("f-1")])
    await shelf.prune(PruneRule(states=["failed"]))
    assert await shelf.traces("f-1") == [] and await PrunedCases(shelf.store).unfinished() == []


async def test_of_a_case_with_very_many_alerts_none_is_left(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    search = MemoryStore.search

    async def small_pages(self: MemoryStore, kind: str, where: Any = (), *, limit: int = 100, **more: Any) -> Any:
        return await search(self, kind, where, limit=min(limit, 2), **more)

    monkeypatch.setattr(MemoryStore, "search", small_pages)
    await shelf.case("f-1")
    for number in range(5):
        await shelf.put("alert", f"failure/f-1/{number}", {"id": f"failure/f-1/{number}", "case": "f-1"})
    await shelf.prune()
    assert await shelf.store.count("alert") in ({}, {"": 0})


async def test_where_nothing_goes_only_cases_are_read(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    scan = MemoryStore.scan

    def noted(self: MemoryStore, kind: str, prefix: str = "") -> AsyncIterator[Any]:
        read.append(kind)
        return scan(self, kind, prefix)

    await shelf.case("f-1", files=["mine"], days_ago=1)
    monkeypatch.setattr(MemoryStore, "scan", noted)
    assert (await shelf.prune()).cases == 0
    assert set(read) <= {"case", "pruned", "flow-file"}


async def test_the_file_of_a_flow_goes_with_the_last_that_names_its_version(shelf: Shelf) -> None:
    for digest in ("newest", "deployed", "tried", "live", "old", "nobody"):
        file = {"name": "f", "digest": digest, "file": "f.yaml", "text": '# see "f-1"', "used_at": 1}
        await shelf.put("flow-file", f"f@{digest}", file)
    await shelf.put("flow-file", "f@now", {"name": "f", "digest": "now", "file": "f", "used_at": shelf.clock.now()})
    await shelf.put("flow-file", "gone@v", {"name": "gone", "digest": "v", "file": "f", "used_at": 1})
    await shelf.put("flow", "f", {"name": "f", "digest": "newest", "tentative": True})
    await shelf.put("flow-version", "f@1", {"name": "f", "digest": "deployed"})
    await shelf.put("flow-version", "f@2", {"name": "f", "digest": "tried", "tentative": True})
    await shelf.put("flow-version", "gone@1", {"name": "gone", "digest": "v"})
    await shelf.case("f-1", digest="old")
    await shelf.case("f-2", digest="live", status="running")
    view = await shelf.prune()
    assert (view.cases, view.spared) == (1, 0), "what a file says keeps no case"
    assert [found.id async for found in shelf.store.scan("flow-file")] == ["f@deployed", "f@live", "f@newest", "f@now"]


async def test_what_has_gone_is_not_read_again_for_each_case_that_there_is(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = 0

    class Gone(list[PrunedDocument]):
        def __iter__(self) -> Iterator[PrunedDocument]:
            nonlocal reads
            reads += 1
            return super().__iter__()

    remove = Pruner._remove

    async def removed(self: Pruner, *of: Any) -> tuple[PruneView, list[PrunedDocument]]:
        view, gone = await remove(self, *of)
        return view, Gone(gone)

    monkeypatch.setattr(Pruner, "_remove", removed)
    for number in range(40):
        await shelf.case(f"c{number}", days_ago=20 if number % 2 else 1)
    assert (await shelf.prune()).cases == 20
    assert reads <= 10


async def test_two_prunes_at_once_are_refused(shelf: Shelf) -> None:
    await shelf.case("f-1")
    view = await shelf.retention.prune(_request(), who="me")
    with pytest.raises(Conflict, match="a prune is under way"):
        await shelf.retention.prune(_request(), who="you")
    assert view.state == "running"


async def test_a_prune_without_conditions_is_refused(shelf: Shelf) -> None:
    with pytest.raises(InvalidRequest, match="say which cases go"):
        await shelf.prune(PruneRule())


async def test_a_grace_shorter_than_uses_are_noted_for_is_refused(shelf: Shelf) -> None:  # DU-6
    with pytest.raises(InvalidRequest, match=r"at least 5 min \(--grace 5min\)"):
        await shelf.prune(grace_ms=GRACE_MIN_MS - 1)
    assert (await shelf.prune(grace_ms=GRACE_MIN_MS)).state == "done"


async def test_each_server_drops_its_copies_of_what_another_has_removed(tmp_path: Path) -> None:  # DU-6
    store = MemoryStore()
    await store.open()
    one, other = (SharedFileStore(store, FolderFileStore(tmp_path / name)) for name in ("one", "other"))
    for each in (one, other):
        each.open()
        await each.keep_many({digest_of(text): text.encode() for text in ("mine", "yours")})
    mine, yours = (tmp_path / "one" / digest_of(text)[:2] / digest_of(text) for text in ("mine", "yours"))
    for path in (mine, yours, *(tmp_path / "one" / "used" / each.name for each in (mine, yours))):
        if path.exists():
            os.utime(path, (1, 1))
    shelf = Shelf(store, one)
    await other.sweep([mine.name], 2**52)
    await shelf.retention.look()
    assert (mine.exists(), yours.exists()) == (False, True)
    await one.keep_many({mine.name: b"mine"})
    await other.sweep([mine.name], 2**52)
    shelf.hours_pass()
    await shelf.retention.look()
    assert mine.exists(), "it came a moment ago"
    await shelf.close()


async def test_rules_are_applied_once_an_hour_and_only_if_there_are_some(shelf: Shelf) -> None:  # DU-6
    await shelf.case("f-1")
    await shelf.retention.look()
    assert await shelf.cases() == ["f-1"]
    rule = RetentionRule(name="old", older_than_ms=10 * DAY_MS)
    await shelf.retention.put_rule(rule, who="me")
    await shelf.retention.look()
    assert await shelf.cases() == ["f-1"], "the hour is not over"
    shelf.clock.catch_up(shelf.clock.now() + EVERY_MS)
    await shelf.retention.look()
    assert await shelf.cases() == []
    pruned = await shelf.retention.pruned(CaseId("f-1"))
    assert pruned is not None and "was pruned by retention" in pruned.sentence()
    assert [view.rule for view in await shelf.retention.rules()] == [rule]
    assert (await shelf.retention.remove_rule("old")).rule == rule and await shelf.retention.rules() == []


def _begun(case: str, files: Sequence[str] = ()) -> PrunedDocument:
    """The note of a prune that was cut short."""
    return PrunedDocument(
        id=CaseId(case),
        flow="f",
        status="completed",
        started_at=0,
        ended_at=1,
        pruned_at=2,
        cases=[CaseId(case)],
        files=[digest_of(text) for text in files],
    )


def _request() -> PruneRequest:
    return PruneRequest(rules=[PruneRule(older_than_ms=1)])
