"""A watched folder of a storage element: what lies there whole comes into its set, once."""

import hashlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from mendflow.core.model.data import NameRule, NameRules, StorageElement
from mendflow.core.model.data_sets import FolderWatch, Gathering, WatchView
from mendflow.core.model.errors import InvalidRequest, NotFound
from mendflow.services.api.domain import Domain
from mendflow.services.base.clock import SystemClock
from mendflow.services.data.watches.storage import ListedFile
from mendflow.services.runtime.server import Server, ServerSettings
from mendflow.stores.memory import MemoryStore
from mendflow.wiring import WatchedElements
from tests.servers import s3
from tests.services.data_sets.kit import EACH, cases_of, names_in, wish
from tests.services.recovery.kit import World

FOR_EACH = Gathering(name="each", flow="each", count=1)


class Watched:
    """A house that watches a folder on this disk."""

    def __init__(self, world: World, folder: Path) -> None:
        self.world = world
        self.folder = folder

    async def watch(self, **settings: object) -> WatchView:
        given = {"name": "w", "every_ms": 100, "stable_ms": 150, "prefix": "in", "match": "*.dat", **settings}
        watch = FolderWatch(element="disk", data_set="raw", **given)  # type: ignore[arg-type]  # as the test says
        return await self.world.runtime.watches.add(watch, who="me")

    def write(self, name: str, content: str = "hello") -> Path:
        path = self.folder / "store" / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        return path

    async def until(self, **wanted: object) -> WatchView:
        async def reached() -> WatchView | None:
            [view] = await self.world.runtime.watches.all()
            return view if all(getattr(view, name) == value for name, value in wanted.items()) else None

        view = await self.world.until(reached, str(wanted))
        assert isinstance(view, WatchView)
        return view

    async def files(self) -> list[str]:
        return sorted(each.logical for each in await self.world.runtime.data_sets.files("raw"))

    async def left_out(self) -> list[str]:
        """What the administrator was told of files that did not come."""
        told = [each.message or "" for each in await self.world.domain.notices()]
        return [each for each in told if "leaves out" in each]


@pytest.fixture
async def watched(tmp_path: Path) -> AsyncIterator[Watched]:
    world = World(MemoryStore(), tmp_path, ServerSettings(files_roots=None))
    world.server = Server(
        store=world.store,
        file_store=world.server.file_store,
        clock=SystemClock(),
        settings=ServerSettings(files_roots=None),
        version="test",
        elements=WatchedElements(),
    )
    world.domain = Domain(world.server)
    await world.server.open()
    (tmp_path / "store").mkdir()
    element = StorageElement(name="disk", url=f"file://{tmp_path}/store")
    await world.runtime.catalogue.elements.put(element, replace=False)
    await world.domain.deploy(EACH)
    await world.runtime.data_sets.define(wish(FOR_EACH), who="me")
    yield Watched(world, tmp_path)
    await world.server.close()


async def test_a_hidden_file_is_its_writers_until_it_is_renamed(watched: Watched) -> None:  # PJ-9
    half = watched.write(".a.dat")
    watched.write("b.dat")
    await watched.watch(stable_ms=0)
    await watched.until(known=1, unsettled=0)
    assert await watched.files() == ["/in/b.dat"]
    half.rename(half.with_name("a.dat"))
    await watched.until(known=2)
    assert await watched.files() == ["/in/a.dat", "/in/b.dat"]


async def test_a_file_that_arrives_starts_a_case(watched: Watched) -> None:  # PJ-9
    watched.write("a.dat")
    watched.write("b.txt")
    watched.write(".draft.dat")
    watched.write("deep/c.dat")
    await watched.watch()
    await watched.until(known=2, unsettled=0)
    assert await watched.files() == ["/in/a.dat", "/in/deep/c.dat"]

    async def two() -> bool:
        return len(await cases_of(watched.world.store)) == 2

    await watched.world.until(two)
    found = sorted(name for case in await cases_of(watched.world.store) for name in names_in(case))
    assert found == ["/in/a.dat", "/in/deep/c.dat"]
    known = await watched.world.runtime.catalogue.files.get("/in/a.dat")
    assert (known.bytes, known.data_set, known.replicas[0].element) == (5, "raw", "disk")


async def test_a_file_that_still_grows_is_left_alone_until_it_does_not(watched: Watched) -> None:
    path = watched.write("a.dat", "half")
    await watched.watch(stable_ms=60_000)
    await watched.until(known=0, unsettled=1)
    with path.open("a") as out:
        out.write(" whole")
    await watched.watch(stable_ms=0)
    await watched.until(known=1)
    known = await watched.world.runtime.catalogue.files.get("/in/a.dat")
    assert known.bytes == len("half whole")


@pytest.mark.parametrize("content", ["something else", "HELLO"])  # of another size, and of the same
async def test_a_file_that_changes_after_it_was_taken_in_starts_nothing_and_is_told_of(
    watched: Watched, content: str
) -> None:
    path = watched.write("a.dat")
    await watched.watch()
    await watched.until(known=1)
    path.write_text(content)
    watched.write("b.dat")
    view = await watched.until(known=2, left_out=1)
    assert "a name never gets another content" in view.problem
    assert await watched.files() == ["/in/a.dat", "/in/b.dat"]
    assert len(await watched.left_out()) == 1
    path.write_text("hello")
    await watched.until(known=2, left_out=0, problem="")


async def test_a_file_that_was_changed_while_nobody_looked_is_told_of(watched: Watched) -> None:
    path = watched.write("a.dat")
    await watched.watch()
    await watched.until(known=1)
    await watched.world.runtime.watches.remove("w")
    path.write_text("something else")
    await watched.watch(name="again")
    await watched.until(known=1, left_out=1)


async def test_a_file_that_is_only_touched_is_the_same(watched: Watched) -> None:
    path = watched.write("a.dat")
    await watched.watch(stable_ms=0)
    await watched.until(known=1)
    os.utime(path, ns=(1, 1))
    watched.write("b.dat")
    await watched.until(known=2, left_out=0, problem="")
    assert await watched.left_out() == []


async def test_files_that_were_left_out_come_when_the_rules_of_the_storage_name_them(watched: Watched) -> None:  # PJ-9
    elements = watched.world.runtime.catalogue.elements
    element = await elements.find("disk")
    assert element is not None
    all_but_b = NameRules(
        to_physical=(NameRule(protocol=element.protocol, match="/in/(.*)", result="in/$1"),),
        to_logical=(NameRule(protocol=element.protocol, match="in/([^b].*)", result="/in/$1"),),
    )
    await elements.put(replace(element, rules=all_but_b), replace=True)
    watched.write("a.dat")
    watched.write("b.dat")
    await watched.watch(stable_ms=0)
    await watched.until(known=1, left_out=1)
    await elements.put(element, replace=True)
    await watched.until(known=2, left_out=0, problem="")
    assert await watched.files() == ["/in/a.dat", "/in/b.dat"]


async def test_of_many_files_that_are_left_out_the_first_are_named_in_one_notice(watched: Watched) -> None:
    for number in range(5):
        watched.write(f"é{number}.dat")
    await watched.watch(stable_ms=0)
    view = await watched.until(left_out=5)
    assert "é2.dat" in view.problem and view.problem.endswith("; and 2 more")
    [told] = await watched.left_out()
    assert told == f"watch w leaves out what it found: {view.problem}"
    for path in list((watched.folder / "store" / "in").iterdir()):
        path.unlink()
    await watched.until(left_out=0, problem="")


async def test_whatever_breaks_a_look_is_told_of(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(_: object, element: StorageElement, prefix: str) -> list[ListedFile]:
        raise RuntimeError(f"{prefix} of {element.name} is odd")

    with monkeypatch.context() as patch:
        patch.setattr(WatchedElements, "list", broken)
        await watched.watch()
        await watched.until(problem="the look broke off: RuntimeError('in of disk is odd')")
    watched.write("a.dat")
    await watched.until(problem="")


async def test_a_watch_that_was_removed_and_is_made_again_tells_what_it_sees(watched: Watched) -> None:
    watched.write("a.dat")
    await watched.watch()
    await watched.until(known=1)
    await watched.world.runtime.watches.remove("w")
    await watched.watch()
    await watched.until(known=1)


async def test_a_name_with_another_content_is_told_of_once(watched: Watched) -> None:
    watched.write("a.dat")
    await watched.watch()
    await watched.until(known=1)
    await watched.world.runtime.watches.remove("w")
    watched.write("a.dat", "other")
    other = FolderWatch(name="other", element="disk", data_set="again", prefix="in", every_ms=100, stable_ms=0)
    await watched.world.runtime.watches.add(other, who="me")
    view = await watched.until(known=0, unsettled=0, left_out=1)
    assert "a name never gets another content" in view.problem
    assert len(await watched.left_out()) == 1


@pytest.mark.parametrize("bad", ["a#.dat", "a%2e.dat", "a\n.dat", "\udcff.dat", "é.dat", "q'uote.dat", "a&b;c.dat"])
async def test_a_name_that_cannot_be_is_told_of_and_holds_up_no_other(watched: Watched, bad: str) -> None:  # PJ-9
    watched.write(bad)
    watched.write("z.dat")
    await watched.watch(stable_ms=0)
    view = await watched.until(known=1, unsettled=0, left_out=1)
    assert await watched.files() == ["/in/z.dat"]
    assert repr(f"in/{bad}") in view.problem
    [told] = await watched.left_out()
    assert repr(f"in/{bad}") in told


async def test_a_watch_goes_on_after_a_restart_without_starting_anything_twice(watched: Watched) -> None:
    watched.write("a.dat")
    await watched.watch()
    await watched.until(known=1)
    await watched.world.restart()
    watched.write("b.dat")
    await watched.until(known=2)
    assert await watched.files() == ["/in/a.dat", "/in/b.dat"]


async def test_an_element_that_does_not_answer_is_told_of(watched: Watched) -> None:
    os.rmdir(watched.folder / "store")
    await watched.watch(prefix="")
    await watched.until(problem=f"the folder {watched.folder}/store is not there")
    (watched.folder / "store").mkdir()
    await watched.until(problem="")
    await watched.watch(prefix="in")
    await watched.until(problem=f"the folder {watched.folder}/store/in is not there")
    watched.write("a.dat")
    await watched.until(known=1, problem="")


async def test_what_cannot_be_watched_is_refused(watched: Watched) -> None:
    with pytest.raises(NotFound, match="no storage element"):
        await watched.world.runtime.watches.add(FolderWatch(name="w", element="tape", data_set="raw"), who="me")
    with pytest.raises(InvalidRequest, match="no path below"):
        await watched.watch(prefix="../etc")
    with pytest.raises(InvalidRequest, match="every 100 ms"):
        await watched.watch(every_ms=1)
    with pytest.raises(NotFound, match="no watch"):
        await watched.world.runtime.watches.remove("w")


@pytest.mark.full
async def test_a_bucket_of_a_real_s3_server_is_watched(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:  # PJ-9
    for name, value in s3.ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    element = s3.server().element()
    await watched.world.runtime.catalogue.elements.put(element, replace=False)
    s3.server().raw().pipe_file(f"{element.url}/in/a.dat", b"raw data")
    watch = FolderWatch(name="w", element=element.name, data_set="raw", prefix="in", every_ms=100, stable_ms=100)
    await watched.world.runtime.watches.add(watch, who="me")
    await watched.until(known=1, unsettled=0)
    [file] = await watched.world.runtime.data_sets.files("raw")
    assert (file.logical, file.sha256) == ("/in/a.dat", hashlib.sha256(b"raw data").hexdigest())
