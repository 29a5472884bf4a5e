"""Watched storage elements: new files there are added to data sets.

A file that is still being written can be told from a complete one only by time: it is added when it has not changed for
a while. Then it is read once, for its digest, and added to the catalogue. One server scans each watch; if two do so for
a moment, both find the same files, and these count once.

Some watches are documents; others belong to the triggers of flows, and last as long as these."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from mendflow.core.data.flow_triggers import EVERY_MS_MIN, FlowWatch
from mendflow.core.data.paths import path_flaw
from mendflow.core.data.set_specs import check_name
from mendflow.core.model.data import StorageElement
from mendflow.core.model.data_sets import DataSetSpec, FolderWatch, WatchView
from mendflow.core.model.errors import Conflict, InvalidRequest, NotFound, RequestError, StoreUnavailable
from mendflow.core.model.ids import Instant
from mendflow.services.base.background_tasks import cancel_tasks
from mendflow.services.base.contracts import Clock
from mendflow.services.base.readable_documents import readable_by_id
from mendflow.services.base.responsibility import Responsibility
from mendflow.services.data.sets.service import DataSets
from mendflow.services.data.watches.scan import FolderScanner, ScanState
from mendflow.services.data.watches.storage import StorageUnavailable
from mendflow.stores.contract import Delete, Put, Store, WriteDone

log = logging.getLogger("mendflow.watches")

WATCH_KIND: Final = "watch"
REPORT_KIND: Final = "watch-report"
LOOK_MS: Final = 1_000
LIST_MS: Final = 5_000

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(FolderWatch).decode
_decode_report = msgspec.json.Decoder(WatchView).decode


Find = Callable[[str], Awaitable[StorageElement]]
"""The element with a name. Raises NotFound."""


class _WatchState:
    """A watch that this server scans."""

    def __init__(self, watch: FolderWatch) -> None:
        self.watch = watch
        self.memory = ScanState()
        self.due_at: Instant = 0
        self.broken = ""
        self.defined: DataSetSpec | None = None  # the data set as its flow's trigger last defined it here
        self.task: asyncio.Task[None] | None = None

    @property
    def busy(self) -> bool:
        return self.task is not None and not self.task.done()


class WatchService:
    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        turns: Responsibility,
        looker: FolderScanner,
        find: Find,
        sets: DataSets,
        flow_watches: Callable[[], list[FlowWatch]],
    ) -> None:
        self._store = store
        self._clock = clock
        self._responsibility = turns
        self._scanner = looker
        self._find = find
        self._sets = sets
        self._flow_watches = flow_watches
        self._known: dict[str, FolderWatch] = {}
        self._listed_at: Instant = 0
        self._states: dict[str, _WatchState] = {}
        self._task: asyncio.Task[None] | None = None

    # What people ask

    async def all(self) -> list[WatchView]:
        of_flows = {each.watch.name: each.flow for each in self._flow_watches()}
        watches = [*(await self._all_watches()).values()]
        reports = await readable_by_id(self._store.scan(REPORT_KIND), _decode_report)
        by_name = {each.watch.name: each for each in reports.values()}
        return [
            msgspec.structs.replace(
                by_name.get(each.name, WatchView(watch=each)), watch=each, flow=of_flows.get(each.name, "")
            )
            for each in watches
        ]

    async def _all_watches(self) -> dict[str, FolderWatch]:
        """Those of flows come last: no other watch has their names."""
        watches = await readable_by_id(self._store.scan(WATCH_KIND), _decode)
        return watches | {each.watch.name: each.watch for each in self._flow_watches()}

    async def exists(self, name: str) -> bool:
        """Whether somebody has made a watch of this name; one that a flow has does not count."""
        return await self._store.get(WATCH_KIND, name) is not None

    async def changed(self, gone: str = "") -> None:
        """The watches of flows have changed: look at once. `gone` is one that is no more."""
        self._listed_at = 0
        if gone:
            await self._forget(gone)

    async def add(self, watch: FolderWatch, *, who: str) -> WatchView:
        """Watch a folder of an element; a watch with the same name is replaced."""
        check_name(watch.name, "watch")
        check_name(watch.data_set, "data set")
        if watch.prefix and (flaw := path_flaw(watch.prefix)):
            raise InvalidRequest(f"{watch.prefix!r:.200} is no path below a storage element: {flaw}", field="prefix")
        if watch.every_ms < EVERY_MS_MIN or watch.stable_ms < 0:
            raise InvalidRequest(
                f"a watch looks every {EVERY_MS_MIN} ms at most, and waits no time below 0", field="every_ms"
            )
        await self._find(watch.element)
        kept = msgspec.structs.replace(watch, owner=who)
        found = await self._store.get(WATCH_KIND, watch.name)
        version = found.version if found is not None else 0
        [result] = await self._store.write([Put(WATCH_KIND, watch.name, _encode(kept), version)])
        if not isinstance(result, WriteDone):
            raise Conflict(f"watch {watch.name} is just being changed by somebody else; try again")
        self._listed_at = 0
        return WatchView(watch=kept)

    async def remove(self, name: str) -> WatchView:
        """Stop watching. Files that were found stay in their set."""
        found = await self._store.get(WATCH_KIND, name)
        if found is None:
            raise NotFound(f"there is no watch {name!r:.100}; `mendflow data watch` lists them")
        await self._store.write([Delete(WATCH_KIND, name, found.version)])
        await self._forget(name)
        self._listed_at = 0
        return WatchView(watch=_decode(found.body))

    async def _forget(self, name: str) -> None:
        report = await self._store.get(REPORT_KIND, name)
        if report is not None:
            await self._store.write([Delete(REPORT_KIND, name, report.version)])

    # Looking

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="watches")

    async def stop(self) -> None:
        await cancel_tasks(*(each.task for each in self._states.values()), self._task)

    async def _run(self) -> None:
        while True:
            try:
                await self._start_scans()
            except StoreUnavailable as error:
                log.warning("watches could not be loaded: %s; trying again", error.message)
            except Exception:  # whatever the error, the next round may succeed
                log.exception("watches could not be loaded; trying again")
            shortest = min((watch.every_ms for watch in self._known.values()), default=LOOK_MS)
            await self._clock.sleep(min(shortest, LOOK_MS))

    async def _start_scans(self) -> None:
        """Start a scan of each watch that is due. One that hangs does not delay the others."""
        now = self._clock.now()
        if now - self._listed_at >= LIST_MS:
            self._known = await self._all_watches()
            self._listed_at = now
            self._states = {name: each for name, each in self._states.items() if name in self._known or each.busy}
        for watch in self._known.values():
            looking = self._states.setdefault(watch.name, _WatchState(watch))
            if looking.watch != watch and not looking.busy:
                looking = self._states[watch.name] = _WatchState(watch)
            if not looking.busy and now >= looking.due_at and self._responsibility.mine(f"watch {watch.name}"):
                looking.due_at = now + watch.every_ms
                looking.task = asyncio.create_task(self._scan_safely(watch, looking))

    async def _scan_safely(self, watch: FolderWatch, looking: _WatchState) -> None:
        try:
            await self._report(await self._scan(watch, looking))
        except StoreUnavailable as error:
            log.warning("watch %s: %s", watch.name, error.message)
        except Exception:  # the next scan may succeed
            log.exception("watch %s could not add the files that it found; trying again", watch.name)

    async def _scan(self, watch: FolderWatch, looking: _WatchState) -> WatchView:
        """The result of a scan, or the problem that prevented it."""
        try:
            await self._define_set(watch, looking)
            element = await self._find(watch.element)
            view = await self._scanner.look(watch, element, looking.memory)
        except StoreUnavailable:
            raise
        except (StorageUnavailable, RequestError) as error:
            return WatchView(watch=watch, problem=str(error))
        except Exception as error:  # whatever the error, people who wait for files have to see it
            problem = f"the look broke off: {error!r:.300}"
            if problem != looking.broken:
                log.exception("watch %s could not list its folder; trying again", watch.name)
            looking.broken = problem
            return WatchView(watch=watch, problem=problem)
        looking.broken = ""
        return view

    async def _define_set(self, watch: FolderWatch, looking: _WatchState) -> None:
        """The data set of a flow's watch exists before a file of it does, whatever happened when it was deployed."""
        wanted = next((each.data_set for each in self._flow_watches() if each.watch == watch), None)
        if wanted is not None and looking.defined != wanted:
            await self._sets.define(wanted, who=watch.owner)
            looking.defined = wanted

    async def _report(self, view: WatchView) -> None:
        """Write the status of the watch, if it has changed."""
        found = await self._store.get(REPORT_KIND, view.watch.name)
        before = _decode_report(found.body) if found is not None else None
        if before is None or msgspec.structs.replace(before, looked_at=0) != view:
            report = msgspec.structs.replace(view, looked_at=self._clock.now())
            await self._store.write([Put(REPORT_KIND, view.watch.name, _encode(report), found.version if found else 0)])
