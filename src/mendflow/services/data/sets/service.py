"""Operations on data sets, and reports of new files. Everything that is answered is on disk."""

from collections.abc import Sequence

from mendflow.core.data.data_set import DataSet, batch_key, close_set, define_set, requested_inputs, retry_batch
from mendflow.core.data.set_specs import check_set_spec, cycle_flaw
from mendflow.core.model.data import LogicalFile
from mendflow.core.model.data_sets import BatchView, DataSetSpec, DataSetView, Gathering
from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.principals import EVERYTHING, Sight
from mendflow.core.model.values import FileRef
from mendflow.services.cases.flows import Flows
from mendflow.services.data.sets.arrivals import Arrivals
from mendflow.services.data.sets.batches import DataSetController
from mendflow.services.data.sets.store import DataSetStore, Decide
from mendflow.services.data.sets.views import batch_view, set_view


class DataSets:
    def __init__(
        self, *, set_store: DataSetStore, arrivals: Arrivals, controller: DataSetController, flows: Flows
    ) -> None:
        self._set_store = set_store
        self._arrivals = arrivals
        self._flows = flows
        self.controller = controller

    async def all(self, *, every: bool, sight: Sight = EVERYTHING) -> list[DataSetView]:
        """Those that are over only on request."""
        there = [each for each in await self._set_store.all() if sight.sees(each.project)]
        views = [await self.view(each.name) for each in there if every or not each.over]
        return [view for view in views if every or view.state != "over"]

    async def view(self, name: str) -> DataSetView:
        state = await self._set_store.get(name)
        before = {each: await self._set_store.find(each) for each in state.after}
        return set_view(state, before.get)

    async def batches(self, name: str, *, status: str = "", limit: int = 1000) -> list[BatchView]:
        """The newest first."""
        state = await self._set_store.get(name)
        problems = self.controller.problems
        views = [batch_view(each, problems, batch_key(state, each)) for each in state.batches()]
        wanted = [each for each in views if not status or each.status == status]
        return sorted(wanted, key=lambda each: (-each.made_at, each.gathering, -each.number))[:limit]

    async def files(self, name: str, *, limit: int = 1000, offset: int = 0) -> list[FileRef]:
        """In the order in which they came."""
        state = await self._set_store.get(name)
        return [each.file for each in list(state.files.values())[offset : offset + limit]]

    async def define(self, wish: DataSetSpec, *, who: str, project: str = "") -> DataSetView:
        """Create a set, or change what is done with its files from now on."""
        check_set_spec(wish)
        await self._refuse_circle(wish)
        for rule in wish.gatherings:
            await self._check_flow(wish.name, rule)
        await self._set_store.make(wish.name, project)
        for rule in wish.gatherings:
            await self._flows.adopt(rule.flow, who=who)
        await self._change(wish.name, lambda state: define_set(state, wish, by=who))
        return await self.view(wish.name)

    async def _refuse_circle(self, wish: DataSetSpec) -> None:
        after, ahead = {wish.name: wish.after}, list(wish.after)
        while ahead:
            if (name := ahead.pop()) not in after and (before := await self._set_store.find(name)) is not None:
                after[name] = before.after
                ahead.extend(before.after)
        if flaw := cycle_flaw(wish.name, after):
            raise InvalidRequest(flaw)

    async def _check_flow(self, data_set: str, rule: Gathering) -> None:
        await self._flows.refresh(rule.flow)
        known, given = self._flows.newest(rule.flow).flow.inputs, requested_inputs(rule)
        where = f"gathering {rule.name} of data set {data_set}"
        if unknown := sorted(given.keys() - known.keys()):
            there = ", ".join(known) or "none"
            raise InvalidRequest(f"{where}: flow {rule.flow} has no input {unknown[0]!r}; it has {there}; see `inputs`")
        if missing := [name for name, each in known.items() if each.required and name not in given]:
            raise InvalidRequest(f"{where}: flow {rule.flow} wants the input {missing[0]!r}; give it in `inputs`")

    async def arrived(self, name: str, files: Sequence[str | FileRef], *, project: str = "") -> DataSetView:
        """Add files to a set: logical names of the catalogue, or files stored on the server. A set that is made by this
        belongs to the project."""
        await self._arrivals.add_reported_files(name, files, project)
        self.controller.wake(name)
        return await self.view(name)

    async def find(self, name: str) -> DataSet | None:
        return await self._set_store.find(name)

    async def project_of(self, name: str) -> str | None:
        """The project of a set, if it exists."""
        return await self._set_store.project_of(name)

    async def add_watched(self, name: str, files: Sequence[FileRef]) -> None:
        """A watch has found files of a set. When this returns, they are durably in the set."""
        await self._arrivals.add(name, files)
        self.controller.wake(name)

    async def added(self, file: LogicalFile) -> None:
        """A file was added to the catalogue. When this returns, it is durably in its set."""
        if name := await self._arrivals.added(file):
            self.controller.wake(name)

    async def close(self, name: str, *, who: str) -> DataSetView:
        """Close the set: files that wait become a last batch."""
        await self._set_store.get(name)
        await self._arrivals.sweep(name, whole=True)
        await self._change(name, lambda state: close_set(state, by=who))
        return await self.view(name)

    async def retry(self, name: str, gathering: str, number: int, *, who: str) -> BatchView:
        """Start another case for a batch whose case did not complete. Results of completed jobs are reused."""
        await self._set_store.get(name)
        state = await self._change(name, lambda state: retry_batch(state, gathering, number, by=who))
        batch = state.batch(gathering, number)
        return batch_view(batch, {}, batch_key(state, batch))

    async def _change(self, name: str, decide: Decide) -> DataSet:
        state = await self._set_store.change(name, decide)
        self.controller.wake(name)
        return state
