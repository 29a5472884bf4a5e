"""A case that is played without being started: a job whose result is found ends at once with that result, and all
others stay as they would be submitted. Nothing is started, stored or uploaded."""

import asyncio
import hashlib
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

import msgspec
from msgspec.structs import replace

from mendflow.cli.deployment import with_references
from mendflow.cli.inputs import files_of_defaults
from mendflow.client import Client
from mendflow.client.files import reference_of
from mendflow.core.data.table_files import paths_in, with_files
from mendflow.core.engine import Case, decide, evolve, item_of
from mendflow.core.engine.dependents import with_dependents
from mendflow.core.engine.elements import element_of
from mendflow.core.engine.messages import (
    Command,
    ContinueLater,
    FinishItem,
    ItemFailed,
    OfferTask,
    Order,
    Proceed,
    StageFiles,
    StartCalledCase,
    StartCase,
    SubmitJob,
    staging_outcome,
)
from mendflow.core.model.data import LOGICAL_PREFIX
from mendflow.core.model.errors import NotFound
from mendflow.core.model.flow import FILE, FILES, Flow
from mendflow.core.model.forecasts import ResultForecast, WantedResult
from mendflow.core.model.ids import CaseId, item_name
from mendflow.core.model.jobs import JobSpec
from mendflow.core.model.references import references_in
from mendflow.core.model.values import FileRef, Value, is_spilled
from mendflow.core.model.views import CachePolicy
from mendflow.core.results.earlier_results import why_rerun
from mendflow.core.results.result_key import result_key
from mendflow.core.results.undo_checks import can_be_undone

ASKED_AT_ONCE: Final = 500
NO_STORE: Final = "there are no earlier results here"


class ForecastJob(msgspec.Struct, frozen=True):
    """A job that would be submitted, and what would be found for it."""

    spec: JobSpec
    forecast: ResultForecast


class ForecastCase:
    """`client` knows the earlier results; None if there are none. `others` counts what would begin and is no job;
    `failed` says of which names something would fail at once, and why. What `again` names, and what depends on it, uses
    no earlier results."""

    def __init__(self, flow: Flow, client: Client | None, cache: CachePolicy, again: Sequence[str] = ()) -> None:
        self.case = Case.blank()
        self.jobs: list[ForecastJob] = []
        self.others: Counter[str] = Counter()
        self.failed: dict[str, str] = {}
        self._flow = with_references(flow)
        self._client = client
        self._cache = cache
        self._again = again
        self._runs_again: frozenset[int] = frozenset()
        self._equal: Counter[str] = Counter()
        self._orders: deque[Order] = deque()

    async def play(self, inputs: dict[str, Value]) -> None:
        given = await self._known_inputs({**files_of_defaults(self._flow, inputs), **inputs})
        self._give(StartCase(case=CaseId("dry-run"), flow=self._flow, inputs=given))
        self._runs_again = with_dependents(self.case.plan, self._again)
        while self._orders:
            jobs: list[SubmitJob] = []
            while self._orders:
                order = self._orders.popleft()
                if isinstance(order, SubmitJob):
                    jobs.append(order)
                else:
                    await self._take(order)
            for start in range(0, len(jobs), ASKED_AT_ONCE):
                await self._look_up(jobs[start : start + ASKED_AT_ONCE])

    def _give(self, command: Command) -> None:
        self._orders.extend(order for event in decide(self.case, command, 0) for order in evolve(self.case, event))

    async def _take(self, order: Order) -> None:
        if isinstance(order, ContinueLater):
            self._give(Proceed(serial=order.serial))
        elif isinstance(order, ItemFailed):
            self.failed[item_name(order.item)] = f"it would fail at once: {order.fault.message}"
        elif isinstance(order, StageFiles) and (files := await self._staged(order)) is not None:
            self._give(FinishItem(serial=order.serial, outcome=staging_outcome(files)))
        elif isinstance(order, OfferTask | StageFiles | StartCalledCase):
            self.others[item_name(order.item)] += 1

    async def _look_up(self, orders: list[SubmitJob]) -> None:
        wanted = [self._wanted(order) for order in orders]
        found = [ResultForecast(reason=NO_STORE)] * len(wanted)
        if self._client is not None:
            found = await self._client.forecast_results(self._flow.name, wanted, cache=self._cache)
            found = [self._unless_again(order, each) for order, each in zip(orders, found, strict=True)]
        for order, each, forecast in zip(orders, wanted, found, strict=True):
            self.jobs.append(ForecastJob(each.spec, forecast))
            if forecast.outcome is not None:
                self._give(FinishItem(serial=order.serial, outcome=forecast.outcome))

    def _unless_again(self, order: SubmitJob, found: ResultForecast) -> ResultForecast:
        item = item_of(self.case, order.serial)
        if item is None or item.node not in self._runs_again or self._cache == "none":
            return found
        return ResultForecast(reason=why_rerun(item_name(order.spec.item), self._again))

    def _wanted(self, order: SubmitJob) -> WantedResult:
        spec = replace(order.spec, element=element_of(self.case, order.serial))
        base = result_key(spec)
        self._equal[base] += 1
        return WantedResult(spec=spec, number=self._equal[base], undoable=can_be_undone(self.case, order.serial))

    # files, by their content

    async def _known_inputs(self, values: dict[str, Value]) -> dict[str, Value]:
        known = dict(values)
        for name, value in values.items():
            declared = self._flow.inputs.get(name)
            if declared is not None and declared.type == FILE and isinstance(value, str):
                known[name] = await self._known(value)
            elif declared is not None and declared.type == FILES and isinstance(value, list):
                known[name] = [await self._known(each) for each in value]
            elif declared is not None and (paths := paths_in(value, declared.columns)):
                files = {path: await self._known(path) for path in paths}
                known[name] = with_files(value, declared.columns, files)
        return known

    async def _known(self, source: Value) -> Value:
        if not isinstance(source, str):
            return source
        ref = await self._reference(source)
        return ref.as_value() if ref is not None else source

    async def _staged(self, order: StageFiles) -> dict[str, FileRef] | None:
        """The files of a staging; None if one of them cannot be known here."""
        found: dict[str, FileRef] = {}
        try:
            for name, source in order.files.items():
                if (ref := await self._reference(source)) is None:
                    return None
                found[name] = ref
        except NotFound as error:
            self.failed[item_name(order.item)] = f"it would fail at once: {error.message}"
            return None
        if any(is_spilled(part) for _, part in references_in(list(order.data.values()))):
            return None
        return found | {path: _written(path, value) for path, value in order.data.items()}

    async def _reference(self, source: str) -> FileRef | None:
        if source.startswith(LOGICAL_PREFIX):
            return (await self._client.datum(source)).ref() if self._client is not None else None
        if "://" in source:
            return None
        return await asyncio.to_thread(reference_of, Path(self._flow.folder, source))


def _written(path: str, value: Value) -> FileRef:
    content = msgspec.json.encode(value)
    name = PurePosixPath(path).name
    return FileRef(sha256=hashlib.sha256(content).hexdigest(), bytes=len(content), name=name)


def cases_of(jobs: Iterable[ForecastJob]) -> list[str]:
    """The cases whose results would be used, in order and each once."""
    origins = (job.forecast.outcome.cached_from for job in jobs if job.forecast.outcome is not None)
    return list(dict.fromkeys(origin.rpartition("/")[0] for origin in origins))
