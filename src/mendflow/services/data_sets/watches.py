"""Watched storage elements: what lies there comes into data sets.

A file that somebody is still writing cannot be told from one that is whole, except by time: it is taken in when it has
looked the same for a while. Then it is read once, for its digest, and told to the catalogue. One server looks at each
watch; should two do so for a moment, both find the same files, and these are the same. What is remembered from look to
look may be lost: then it takes a little longer."""

import asyncio
import fnmatch
import logging
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

import msgspec

from mendflow.core.data.names import name_at
from mendflow.core.data.paths import path_flaw
from mendflow.core.data.set_wishes import check_name
from mendflow.core.model.data import LogicalFile, Replica, StorageElement
from mendflow.core.model.data_sets import Watch, WatchView
from mendflow.core.model.ids import Instant
from mendflow.core.model.problems import Conflict, Invalid, Mistake, NotFound, StoreUnavailable
from mendflow.services.contracts import Clock
from mendflow.services.data_sets.elements import Elements, NotSeen, Seen
from mendflow.services.data_sets.service import DataSets
from mendflow.services.data_sets.turns import Turns
from mendflow.services.notices import Notices
from mendflow.stores.contract import Delete, Done, Put, Store

log = logging.getLogger("mendflow.watches")

WATCH_KIND: Final = "watch"
REPORT_KIND: Final = "watch-report"
LOOK_MS: Final = 1_000
LIST_MS: Final = 5_000
EVERY_MS_MIN: Final = 100

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Watch).decode
_decode_report = msgspec.json.Decoder(WatchView).decode


Find = Callable[[str], Awaitable[StorageElement]]
"""The element by a name. Raises NotFound."""


class Catalogue(Protocol):
    """What watches want of the catalogue."""

    async def add(self, given: LogicalFile) -> LogicalFile: ...


class _Looking:
    """What is remembered of a watch from look to look."""

    def __init__(self) -> None:
        self.since: dict[str, tuple[str, Instant]] = {}  # by path: how it looks, and since when it looks so
        self.refused: dict[str, tuple[str, str]] = {}  # by path: how it looked when it was refused, and why
        self.due_at: Instant = 0
        self.reported: WatchView | None = None
        self.task: asyncio.Task[None] | None = None


class Watches:
    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        turns: Turns,
        sets: DataSets,
        catalogue: Catalogue,
        find: Find,
        elements: Elements,
        notices: Notices,
    ) -> None:
        self._store = store
        self._clock = clock
        self._turns = turns
        self._sets = sets
        self._catalogue = catalogue
        self._find = find
        self._elements = elements
        self._notices = notices
        self._known: dict[str, Watch] = {}
        self._listed_at: Instant = 0
        self._looking: dict[str, _Looking] = {}
        self._task: asyncio.Task[None] | None = None

    # What people ask

    async def all(self) -> list[WatchView]:
        watches = [_decode(found.body) async for found in self._store.scan(WATCH_KIND)]
        reports = {found.id: _decode_report(found.body) async for found in self._store.scan(REPORT_KIND)}
        told = {each.watch.name: each for each in reports.values()}
        return [msgspec.structs.replace(told.get(each.name, WatchView(watch=each)), watch=each) for each in watches]

    async def add(self, watch: Watch, *, who: str) -> WatchView:
        """Watch a folder of an element; one that is watched by this name already is watched like this from now on."""
        check_name(watch.name, "watch")
        check_name(watch.data_set, "data set")
        if watch.prefix and (flaw := path_flaw(watch.prefix)):
            raise Invalid(f"{watch.prefix!r:.200} is no path below a storage element: {flaw}", field="prefix")
        if watch.every_ms < EVERY_MS_MIN or watch.stable_ms < 0:
            raise Invalid(f"a watch looks every {EVERY_MS_MIN} ms at most, and waits no time below 0", field="every_ms")
        await self._find(watch.element)
        kept = msgspec.structs.replace(watch, owner=who)
        found = await self._store.get(WATCH_KIND, watch.name)
        version = found.version if found is not None else 0
        [result] = await self._store.write([Put(WATCH_KIND, watch.name, _encode(kept), version)])
        if not isinstance(result, Done):
            raise Conflict(f"watch {watch.name} is just being changed by somebody else; try again")
        self._listed_at = 0
        return WatchView(watch=kept)

    async def remove(self, name: str) -> WatchView:
        """Look there no more. What was found stays in its set."""
        found = await self._store.get(WATCH_KIND, name)
        if found is None:
            raise NotFound(f"there is no watch {name!r:.100}; `mendflow watches` lists them")
        await self._store.write([Delete(WATCH_KIND, name, found.version)])
        report = await self._store.get(REPORT_KIND, name)
        if report is not None:
            await self._store.write([Delete(REPORT_KIND, name, report.version)])
        self._known.pop(name, None)
        return WatchView(watch=_decode(found.body))

    # Looking

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="watches")

    async def stop(self) -> None:
        tasks = [each.task for each in self._looking.values() if each.task is not None]
        tasks += [self._task] if self._task is not None else []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            try:
                await self._send_out()
            except StoreUnavailable as error:
                log.warning("watches could not be read: %s", error.message)
            except Exception:  # whatever is wrong with one round, the next may go well
                log.exception("watches could not be read")
            shortest = min((watch.every_ms for watch in self._known.values()), default=LOOK_MS)
            await self._clock.sleep(min(shortest, LOOK_MS))

    async def _send_out(self) -> None:
        """Begin a look at each watch whose turn it is. One that hangs holds up no other."""
        now = self._clock.now()
        if now - self._listed_at >= LIST_MS:
            self._known = {found.id: _decode(found.body) async for found in self._store.scan(WATCH_KIND)}
            self._listed_at = now
        for watch in self._known.values():
            looking = self._looking.setdefault(watch.name, _Looking())
            busy = looking.task is not None and not looking.task.done()
            if not busy and now >= looking.due_at and self._turns.mine(f"watch {watch.name}"):
                looking.due_at = now + watch.every_ms
                looking.task = asyncio.create_task(self._look_safely(watch, looking))

    async def _look_safely(self, watch: Watch, looking: _Looking) -> None:
        try:
            await self.look(watch, looking)
        except StoreUnavailable as error:
            log.warning("watch %s: %s", watch.name, error.message)
        except Exception:  # the next look may go well
            log.exception("watch %s could not look", watch.name)

    async def look(self, watch: Watch, looking: _Looking) -> None:
        known, problem = 0, ""
        try:
            element = await self._find(watch.element)
            found = await self._elements.list(element, watch.prefix)
        except (NotSeen, Mistake) as error:
            if isinstance(error, StoreUnavailable):
                raise
            await self._report(watch, looking, 0, 0, str(error))
            return
        state = await self._sets.find(watch.data_set)
        wanted = [each for each in found if _matches(watch, each.path)]
        looking.since = {each.path: looking.since[each.path] for each in wanted if each.path in looking.since}
        for seen in wanted:
            if (name := name_at(element, seen.path)) is None:
                problem = f"{seen.path} on {element.name} can have no logical name"
            elif (state is not None and name in state.files) or await self._settled(
                watch, looking, element, seen, name
            ):
                known += 1
        for _, why in looking.refused.values():
            problem = why
        await self._report(watch, looking, known, len(wanted) - known, problem)

    async def _settled(self, watch: Watch, looking: _Looking, element: StorageElement, seen: Seen, name: str) -> bool:
        """Whether the file has not changed for long enough, and is in the set now."""
        now, refused = self._clock.now(), looking.refused.get(seen.path)
        if refused is not None and refused[0] == seen.identity:
            return False
        looks, since = looking.since.get(seen.path, ("", 0))
        if looks != seen.identity:
            looking.since[seen.path] = (seen.identity, now)
            if watch.stable_ms:
                return False
        elif now - since < watch.stable_ms:
            return False
        try:
            await self._take_in(watch, element, seen, name)
        except NotSeen as error:
            log.info("watch %s: %s", watch.name, error)
            looking.since.pop(seen.path, None)
            return False
        except Mistake as mistake:
            if isinstance(mistake, StoreUnavailable):
                raise
            looking.refused[seen.path] = (seen.identity, mistake.message)
            self._notices.post(f"watch {watch.name} found {seen.path}, which is not taken in: {mistake.message}")
            return False
        looking.refused.pop(seen.path, None)
        return True

    async def _take_in(self, watch: Watch, element: StorageElement, seen: Seen, name: str) -> None:
        read, digest = await self._elements.read(element, seen.path)
        if read.identity != seen.identity:
            raise NotSeen(f"{seen.path} has changed")
        file = LogicalFile(
            name=name,
            sha256=digest,
            bytes=read.bytes,
            replicas=(Replica(element=element.name, path=seen.path),),
            data_set=watch.data_set,
        )
        added = await self._catalogue.add(file)
        await self._sets.came(watch.data_set, [added.ref()])

    async def _report(self, watch: Watch, looking: _Looking, known: int, unsettled: int, problem: str) -> None:
        """Tell what was seen, if that is not what was told before."""
        view = WatchView(watch=watch, known=known, unsettled=unsettled, problem=problem)
        if view == looking.reported:
            return
        found = await self._store.get(REPORT_KIND, watch.name)
        told = msgspec.structs.replace(view, looked_at=self._clock.now())
        await self._store.write([Put(REPORT_KIND, watch.name, _encode(told), found.version if found else 0)])
        looking.reported = view


def _matches(watch: Watch, path: str) -> bool:
    """Names that begin with a dot are for whoever writes the file, who renames it when it is whole: they count only
    where the pattern says so itself, as in a shell."""
    below = path.removeprefix(watch.prefix.strip("/")).lstrip("/")
    name = below.rpartition("/")[2]
    if name.startswith(".") and not watch.match.rpartition("/")[2].startswith("."):
        return False
    return fnmatch.fnmatchcase(below, watch.match)
