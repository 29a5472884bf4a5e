"""Cases go from store to store in a file, and nothing of them is lost, doubled, or half there."""

import re
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from mendflow.core.model.data import LogicalFile, Replica, StorageElement
from mendflow.core.model.errors import Conflict, RequestError, StoreUnavailable
from mendflow.core.model.flow_files import FlowSource
from mendflow.core.model.import_reports import AddedDocuments
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.views import JobQuery
from mendflow.core.recovery.patterns import JobPattern, Patterns
from mendflow.services.api.archive.records import DocumentRecord
from mendflow.services.cases.flow_file_store import FLOW_FILE_KIND
from mendflow.services.retention.flow_file_sweep import sweep_flow_files
from mendflow.stores.contract import Delete, Put, Store, Write, WriteConflict, WriteDone
from mendflow.stores.memory import MemoryStore
from tests.contract.archived import (
    archive_of_one,
    begun,
    content,
    flow,
    over,
    packed,
    play,
    records,
    unpacked,
    world_on,
)
from tests.contract.backends import Backend
from tests.contract.documents import done
from tests.patience import until
from tests.services.test_repairs import rules_for


async def test_a_case_that_went_through_another_store_is_the_same(backend: Backend, tmp_path: Path) -> None:
    """With its exlet, the case that it called, its decisions, its flow, its rules and its files."""
    case, archive = await archive_of_one(tmp_path / "from")
    async with world_on(backend.make(tmp_path), tmp_path / "to") as there:
        report = await unpacked(there.domain, archive)
        assert (report.imported, report.suspended, report.files) == ([case], [], 1)
        assert content(await packed(there.domain, case)) == content(archive)
        assert (await there.domain.case(case)).status == "completed"
        assert [item.state for item in await there.domain.items(case)] == ["completed"] * 4
        assert (await there.domain.rule_set("f")).version == 1
        kinds = {record.kind for record in records(archive) if isinstance(record, DocumentRecord)}
    assert {"case", "job", "decision", "conversation", "flow", "flow-version", "rules", "rules-version"} <= kinds


async def test_a_case_that_is_not_over_comes_suspended_and_goes_on_when_told(backend: Backend, tmp_path: Path) -> None:
    async with world_on(MemoryStore(), tmp_path / "from") as here:
        case = await begun(here)
        await here.pilot.sync(want=2)
        await here.pilot.exchange({"a[1]": Outcome(outputs="early")})
        archive = await packed(here.domain, case)
        await here.pilot.run_all(play)
        wanted = [(item.item, item.state) for item in await here.domain.items(case)]
    async with world_on(backend.make(tmp_path), tmp_path / "to") as there:
        report = await unpacked(there.domain, archive)
        assert report.suspended == [case]
        assert (await there.domain.case(case)).status == "suspended"
        assert (await there.pilot.sync(want=4, wait_ms=50)).jobs == [], "nothing runs twice"
        await there.domain.resume(case, who="ann")

        async def completed() -> bool:
            await there.pilot.run_all(play)
            return (await there.domain.case(case)).status == "completed"

        await until(completed, "the case to go on to its end")
        assert [(item.item, item.state) for item in await there.domain.items(case)] == wanted
        early = await there.domain.item(case, "a[1]")
        assert early.outputs == "early", "what was done is not done again"
        again = next(job for job in await there.domain.jobs(JobQuery(case=case)) if job.losses)
        assert again.history[0].end == "lost"


async def test_what_is_to_resume_goes_on_at_once_and_what_ran_is_lost(tmp_path: Path) -> None:
    async with world_on(MemoryStore(), tmp_path / "from") as here:
        case = await begun(here)
        await here.pilot.sync(want=1)
        archive = await packed(here.domain, case)
    async with world_on(MemoryStore(), tmp_path / "to") as there:
        report = await unpacked(there.domain, archive, resume=True)
        assert (report.imported, report.suspended) == ([case], [])
        await there.pilot.run_all(play)
        assert (await there.domain.case(case)).status == "completed"


async def test_an_export_is_as_of_one_moment_however_much_goes_on(tmp_path: Path) -> None:
    """What happens while it is read is in it wholly, journal and documents, or not at all."""

    async with world_on(MemoryStore(), tmp_path / "from") as here:
        case = await begun(here)
        await here.pilot.sync(want=4)
        chunks = await here.domain.export([case], who="ann")
        archive = b""
        steps = iter(["a[1]", "a[2]"])
        async for chunk in chunks:
            archive += chunk
            if item := next(steps, ""):
                await here.pilot.exchange({item: Outcome()})
    async with world_on(MemoryStore(), tmp_path / "to") as there:
        await unpacked(there.domain, archive, resume=True)
        await there.pilot.run_all(play)
        assert (await there.domain.case(case)).status == "completed"


async def test_the_same_archive_again_changes_nothing(tmp_path: Path) -> None:
    case, archive = await archive_of_one(tmp_path / "from")
    async with world_on(MemoryStore(), tmp_path / "to") as there:
        await unpacked(there.domain, archive)
        before = content(await packed(there.domain, case))
        report = await unpacked(there.domain, archive)
        assert (report.imported, report.present) == ([], [case])
        assert content(await packed(there.domain, case)) == before


async def test_a_case_that_is_here_with_other_content_refuses_the_whole_archive(tmp_path: Path) -> None:
    async with world_on(MemoryStore(), tmp_path / "from") as here:
        case = await begun(here)
        early = await packed(here.domain, case)
        await here.pilot.run_all(play)
        other = await over(here)
        both = await packed(here.domain, case, other)
        with pytest.raises(Conflict, match=f"case {case} is here already, with other content; nothing was imported"):
            await unpacked(here.domain, early)
    async with world_on(MemoryStore(), tmp_path / "to") as there:
        await unpacked(there.domain, early)
        with pytest.raises(Conflict, match="with other content"):
            await unpacked(there.domain, both)
        assert [view.id for view in await there.domain.cases() if not view.parent and not view.mends] == [case]
        report = await unpacked(there.domain, both, skip_existing=True)
        assert (report.imported, report.skipped) == ([other], [case])


async def test_under_new_ids_a_case_stands_beside_itself(tmp_path: Path) -> None:
    async with world_on(MemoryStore(), tmp_path / "from") as here:
        case = await over(here)
        archive = await packed(here.domain, case)
        report = await unpacked(here.domain, archive, as_new=True)
        [new] = report.imported
        assert new != case and new.startswith(case)
        assert [item.state for item in await here.domain.items(new)] == ["completed"] * 4
        assert (await here.domain.item(new, "a[0]")).job == f"{new}/1"
        assert (await unpacked(here.domain, archive, as_new=True)).present == [new]
        assert content(await packed(here.domain, case)) == content(archive), "the first is as it was"


async def test_the_copy_of_a_case_that_runs_another_again_stands_for_the_copy_of_that(tmp_path: Path) -> None:
    async with world_on(MemoryStore(), tmp_path / "from") as here:
        case = await over(here)
        again = (await here.domain.rerun(case, who="ann")).id
        await here.pilot.run_all(play)
        report = await unpacked(here.domain, await packed(here.domain, again, case), as_new=True)
        views = [await here.domain.case(each) for each in report.imported]
        [copy] = [view for view in views if view.id.startswith(f"{case}-")]
        [copy_again] = [view for view in views if view.id.startswith(f"{again}-")]
        assert (copy.rerun_of, copy.stands_for) == (None, None)
        assert (copy_again.rerun_of, copy_again.stands_for) == (copy.id, copy.id)
        [called] = [view for view in await here.domain.cases() if view.parent == copy_again.id]
        assert called.rerun_of is not None and called.rerun_of.startswith(f"{copy.id}."), "it was called then, too"
        earlier = await here.domain.case(again)
        assert (earlier.rerun_of, earlier.stands_for) == (case, case), "the original is as it was"


async def test_a_copy_stands_for_no_case_that_it_did_not_come_with(tmp_path: Path) -> None:
    async with world_on(MemoryStore(), tmp_path / "from") as here:
        case = await over(here)
        again = (await here.domain.rerun(case, who="ann")).id
        await here.pilot.run_all(play)
        archive = await packed(here.domain, again)
        [copy] = (await unpacked(here.domain, archive, as_new=True)).imported
        assert ((await here.domain.case(copy)).rerun_of, (await here.domain.case(copy)).stands_for) == (None, None)
    async with world_on(MemoryStore(), tmp_path / "to") as there:
        await unpacked(there.domain, archive)
        assert (await there.domain.case(again)).stands_for == case, "under its own id it is what it was"


class Dying(MemoryStore):
    """Its server is killed after so many calls that write."""

    left = 10**9

    async def write(self, writes: Sequence[Write]) -> list[WriteDone | WriteConflict]:
        if any(isinstance(each, Put | Delete) and each.kind == "imported" for each in writes) or self.left < 10**8:
            self.left -= 1
        if self.left < 0:
            raise StoreUnavailable("killed")
        return await super().write(writes)


@pytest.mark.full
async def test_an_import_that_was_killed_anywhere_ends_the_same_when_it_is_run_again(tmp_path: Path) -> None:
    async with world_on(MemoryStore(), tmp_path / "from") as here:
        other = await over(here)
        case = await begun(here)
        await here.pilot.sync(want=2)
        archive = await packed(here.domain, case, other)
    wanted = await _imported(MemoryStore(), tmp_path, archive, case, other)
    for kill_after in range(40):
        store = Dying()
        async with world_on(store, tmp_path / "to") as there:
            store.left = kill_after
            try:
                await unpacked(there.domain, archive)
            except RequestError:
                pass
            else:
                store.left = 10**9
                return
            store.left = 10**9
            if await store.get("case", case) is None:
                assert await store.get("home", case) is None, "nobody goes on with half a case"
        again = MemoryStore()
        again._documents, again._streams, again._version = store._documents, store._streams, store._version
        assert await _imported(again, tmp_path, archive, case, other) == wanted
    raise AssertionError("the import never came to its end")


async def _imported(store: MemoryStore, folder: Path, archive: bytes, *cases: str) -> str:
    """All that is there after an import, but the moments, which are another time's."""
    async with world_on(store, folder / "to") as there:
        await unpacked(there.domain, archive)
        again = content(await packed(there.domain, *cases))
    return re.sub(r"\d{13}", "then", msgspec.json.encode(again).decode())


async def test_files_can_be_left_out(tmp_path: Path) -> None:
    async with world_on(MemoryStore(), tmp_path / "from") as here:
        case = await over(here)
        small, whole = await packed(here.domain, case, files=False), await packed(here.domain, case)
        assert len(small) < len(whole)
    async with world_on(MemoryStore(), tmp_path / "to") as there:
        assert (await unpacked(there.domain, small)).files == 0
        assert (await unpacked(there.domain, whole)).files == 1, "what was left out can come later"


async def test_everything_is_everything(tmp_path: Path) -> None:
    async with world_on(MemoryStore(), tmp_path / "from") as here:
        cases = {await over(here), await over(here)}
        archive = await packed(here.domain, everything=True)
        chosen = await packed(here.domain, where="owner == 'ann' && done > 0 && parent == null && mends == null")
    async with world_on(MemoryStore(), tmp_path / "to") as there:
        assert set((await unpacked(there.domain, archive)).imported) == cases
        assert content(await packed(there.domain, everything=True)) == content(archive)
    assert {each.root for each in records(chosen) if hasattr(each, "root")} == cases


async def test_the_file_of_a_flow_goes_with_its_cases(tmp_path: Path) -> None:
    sent = [FlowSource(file="f.yaml", text=text) for text in ("# deployed", "# tried")]
    tried = msgspec.structs.replace(flow(4), source=sent[1])
    async with world_on(MemoryStore(), tmp_path / "from") as here:
        await here.domain.deploy(msgspec.structs.replace(flow(), source=sent[0]), who="ann")
        first = (await here.domain.start("f", {}, who="ann")).id
        second = (await here.domain.start_with_flow(tried, {}, who="ann")).id
        archive = await packed(here.domain, first, second)
        removed = (await here.domain.remove_flow("f", who="ann")).name
        alone = await packed(here.domain, second)
    async with world_on(MemoryStore(), tmp_path / "to") as there:
        await unpacked(there.domain, archive)
        assert [(await there.domain.flow_file_of(each)).text for each in (first, second)] == ["# deployed", "# tried"]
        assert (await there.domain.flow_file(removed)).by == "ann"
        assert (await unpacked(there.domain, archive)).notes == []
    async with world_on(MemoryStore(), tmp_path / "alone") as there:
        await unpacked(there.domain, alone)
        assert (await there.domain.flow_file_of(second)).text == "# tried"


async def test_the_file_of_a_flow_that_is_imported_is_in_use_from_now_on(tmp_path: Path) -> None:
    """A prune may come before its cases are here."""

    async def is_used_long_ago(store: Store) -> None:
        for found in [each async for each in store.scan(FLOW_FILE_KIND)]:
            old = {**msgspec.json.decode(found.body), "used_at": 1}
            await done(store, Put(FLOW_FILE_KIND, found.id, msgspec.json.encode(old), found.version))

    async with world_on(MemoryStore(), tmp_path / "from") as here:
        sent = msgspec.structs.replace(flow(), source=FlowSource(file="f.yaml", text="# tried"))
        case = (await here.domain.start_with_flow(sent, {}, who="ann")).id
        await here.domain.remove_flow("f", who="ann")
        await is_used_long_ago(here.server.store)
        archive = await packed(here.domain, case)
    async with world_on(MemoryStore(), tmp_path / "to") as there:
        for _ in range(2):
            now = there.server.clock.now()
            await unpacked(there.domain, archive)
            assert await sweep_flow_files(there.server.store, (), now) == (0, 0)
            await is_used_long_ago(there.server.store)


async def test_the_catalogue_of_files_goes_with_everything(tmp_path: Path) -> None:  # PJ-7
    async with world_on(MemoryStore(), tmp_path / "a") as here, world_on(MemoryStore(), tmp_path / "b") as there:
        await here.domain.put_element(StorageElement(name="near", url="file:///near"), who="me")
        known = LogicalFile(name="/store/a", sha256="a" * 64, bytes=3, replicas=(Replica(element="near"),))
        known = await here.domain.add_data(known, who="me")
        archive = await packed(here.domain, everything=True)
        await unpacked(there.domain, archive)
        assert await there.domain.datum("/store/a") == known
        assert (await there.domain.places("/store/a"))[0].url == "file:///near/store/a"


async def test_rules_that_are_others_here_stay_and_are_told_about(tmp_path: Path) -> None:
    case, archive = await archive_of_one(tmp_path / "from")
    async with world_on(MemoryStore(), tmp_path / "to") as there:
        await over(there)
        report = await unpacked(there.domain, archive)
        assert report.imported == [case]
        assert any(note.startswith("rules f is another here") for note in report.notes)


async def test_the_report_names_what_came_along_for_all_cases(tmp_path: Path) -> None:
    """Rules that came with an archive of one case hold for others, too: nobody should find that out later."""
    async with world_on(MemoryStore(), tmp_path / "from") as here:
        await here.domain.put_rules(rules_for("*", again="fault.exit_code == 9"), who="ann")
        case = await over(here)
        await here.domain.register_compensation("a", "f", who="ann")
        night = JobPattern(name="night", messages="submit run")
        await here.domain.add_patterns(Patterns(conversations=(night,)), who="ann")
        await here.domain.put_element(StorageElement(name="near", url="file:///near"), who="ann")
        known = LogicalFile(name="/store/a", sha256="a" * 64, bytes=3, replicas=(Replica(element="near"),))
        await here.domain.add_data(known, who="ann")
        one, whole = await packed(here.domain, case), await packed(here.domain, everything=True)
    async with world_on(MemoryStore(), tmp_path / "one") as there:
        assert (await unpacked(there.domain, one)).added == AddedDocuments(flows=["f"], rules=["*", "f"])
        assert (await unpacked(there.domain, one)).added == AddedDocuments(), "it was here already"
    async with world_on(MemoryStore(), tmp_path / "whole") as there:
        assert (await unpacked(there.domain, whole)).added == AddedDocuments(
            flows=["f"], rules=["*", "f"], compensations=["a"], patterns=["night"], elements=["near"], data_files=1
        )


async def test_a_case_that_is_not_there_is_not_exported(tmp_path: Path) -> None:
    async with world_on(MemoryStore(), tmp_path) as here:
        with pytest.raises(RequestError, match="there is no case 'f-nope'"):
            await packed(here.domain, "f-nope")
