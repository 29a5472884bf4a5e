"""A watched folder of a storage element: what lies there whole comes into its set, once."""

import hashlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mendflow.core.model.data import StorageElement
from mendflow.core.model.data_sets import Gathering, Watch, WatchView
from mendflow.core.model.problems import Invalid, NotFound
from mendflow.services.clock import SystemClock
from mendflow.services.house import House, HouseRules
from mendflow.services.local_domain import LocalDomain
from mendflow.stores.memory import MemoryStore
from mendflow.wiring import WatchedElements
from tests.servers import s3
from tests.services.data_sets.kit import EACH, cases_of, names_in, wish
from tests.services.exceptions.kit import World

FOR_EACH = Gathering(name="each", flow="each", count=1)


class Watched:
    """A house that watches a folder on this disk."""

    def __init__(self, world: World, folder: Path) -> None:
        self.world = world
        self.folder = folder

    async def watch(self, **settings: object) -> WatchView:
        given = {"every_ms": 100, "stable_ms": 150, "prefix": "in", "match": "*.dat", **settings}
        watch = Watch(name="w", element="disk", data_set="raw", **given)  # type: ignore[arg-type]  # as the test says
        return await self.world.services.watches.add(watch, who="me")

    def write(self, name: str, content: str = "hello") -> Path:
        path = self.folder / "store" / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        return path

    async def until(self, **wanted: object) -> WatchView:
        async def reached() -> WatchView | None:
            [view] = await self.world.services.watches.all()
            return view if all(getattr(view, name) == value for name, value in wanted.items()) else None

        view = await self.world.until(reached, str(wanted))
        assert isinstance(view, WatchView)
        return view

    async def files(self) -> list[str]:
        return sorted(each.logical for each in await self.world.services.data_sets.files("raw"))


@pytest.fixture
async def watched(tmp_path: Path) -> AsyncIterator[Watched]:
    world = World(MemoryStore(), tmp_path, HouseRules(files_roots=None))
    world.house = House(
        store=world.store,
        keeper=world.house.keeper,
        clock=SystemClock(),
        rules=HouseRules(files_roots=None),
        version="test",
        elements=WatchedElements(),
    )
    world.domain = LocalDomain(world.house)
    await world.house.open()
    (tmp_path / "store").mkdir()
    element = StorageElement(name="disk", url=f"file://{tmp_path}/store")
    await world.services.catalogue.elements.put(element, replace=False)
    await world.domain.deploy(EACH)
    await world.services.data_sets.define(wish(FOR_EACH), who="me")
    yield Watched(world, tmp_path)
    await world.house.close()


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
    known = await watched.world.services.catalogue.files.get("/in/a.dat")
    assert (known.bytes, known.data_set, known.replicas[0].element) == (5, "raw", "disk")


async def test_a_file_that_still_grows_is_left_alone_until_it_does_not(watched: Watched) -> None:
    path = watched.write("a.dat", "half")
    await watched.watch(stable_ms=60_000)
    await watched.until(known=0, unsettled=1)
    with path.open("a") as out:
        out.write(" whole")
    await watched.watch(stable_ms=0)
    await watched.until(known=1)
    known = await watched.world.services.catalogue.files.get("/in/a.dat")
    assert known.bytes == len("half whole")


async def test_a_file_that_changes_after_it_was_taken_in_starts_nothing(watched: Watched) -> None:
    path = watched.write("a.dat")
    await watched.watch()
    await watched.until(known=1)
    path.write_text("something else")
    watched.write("b.dat")
    await watched.until(known=2)
    assert await watched.files() == ["/in/a.dat", "/in/b.dat"]


async def test_a_name_with_another_content_is_told_of_once(watched: Watched) -> None:
    watched.write("a.dat")
    await watched.watch()
    await watched.until(known=1)
    await watched.world.services.watches.remove("w")
    watched.write("a.dat", "other")
    other = Watch(name="other", element="disk", data_set="again", prefix="in", every_ms=100, stable_ms=0)
    await watched.world.services.watches.add(other, who="me")
    view = await watched.until(known=0, unsettled=1)
    assert "a name never gets another content" in view.problem
    told = [each for each in await watched.world.domain.notices() if "not taken in" in (each.message or "")]
    assert len(told) == 1


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
    await watched.until(problem=f"{watched.folder}/store is not there")
    (watched.folder / "store").mkdir()
    await watched.until(problem="")


async def test_what_cannot_be_watched_is_refused(watched: Watched) -> None:
    with pytest.raises(NotFound, match="no storage element"):
        await watched.world.services.watches.add(Watch(name="w", element="tape", data_set="raw"), who="me")
    with pytest.raises(Invalid, match="no path below"):
        await watched.watch(prefix="../etc")
    with pytest.raises(Invalid, match="every 100 ms"):
        await watched.watch(every_ms=1)
    with pytest.raises(NotFound, match="no watch"):
        await watched.world.services.watches.remove("w")


async def test_a_bucket_of_a_real_s3_server_is_watched(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:  # PJ-9
    for name, value in s3.ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    element = s3.server().element()
    await watched.world.services.catalogue.elements.put(element, replace=False)
    s3.server().raw().pipe_file(f"{element.url}/in/a.dat", b"raw data")
    watch = Watch(name="w", element=element.name, data_set="raw", prefix="in", every_ms=100, stable_ms=100)
    await watched.world.services.watches.add(watch, who="me")
    await watched.until(known=1, unsettled=0)
    [file] = await watched.world.services.data_sets.files("raw")
    assert (file.logical, file.sha256) == ("/in/a.dat", hashlib.sha256(b"raw data").hexdigest())
