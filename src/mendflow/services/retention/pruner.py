"""One run of prune: choose, follow references, remove, sweep files.

What the run reads is from `started_at` on. A reference that is written later, or was missed because the reading had
passed its place, is to a file that was asked for not long before: such files are not removed, whatever else says so
(docs/understand/decisions/0028)."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from msgspec.structs import replace

from mendflow.core.model.ids import CaseId, Instant
from mendflow.core.model.retention import (
    LISTED_MAX,
    PrunedCase,
    PruneRequest,
    PruneView,
    SparedCase,
)
from mendflow.core.retention.marking import Marked, marked
from mendflow.core.retention.selection import selected
from mendflow.services.base.contracts import Clock, FileStore
from mendflow.services.retention.case_census import CaseGroup, all_case_groups, needs_sizes
from mendflow.services.retention.case_remover import STILL_HELD, TOGETHER, CaseRemover
from mendflow.services.retention.flow_file_sweep import sweep_flow_files
from mendflow.services.retention.pruned_cases import PrunedCases, PrunedDocument
from mendflow.services.retention.references import CaseGroupContents, ReferenceReader
from mendflow.stores.contract import Store

log = logging.getLogger("mendflow.retention")

Progress = Callable[[PruneView], Awaitable[None]]

NAMED: Final = "it was named"
ENDED_LATELY: Final = "it ended less than 10 minutes ago, and whoever started it may ask for it again"


class _Plan(NamedTuple):
    """What goes, by group; why the rest of what the rules chose stays; and the files that nothing else refers to.
    `keyed` have ended so lately that whoever started them may ask for them again."""

    going: dict[CaseId, PrunedDocument]
    contents: Mapping[CaseId, CaseGroupContents]
    marked: Marked
    sizes: Mapping[str, int]
    quiet: bool
    keyed: list[CaseId]

    def bytes_of(self, group: CaseId) -> int:
        """What the group takes, without the files that others refer to."""
        own = self.contents[group].files & self.marked.unreferenced
        return self.contents[group].text_bytes + sum(self.sizes.get(digest, 0) for digest in own)


class Pruner:
    """`reports` is the folder in which reports of cases are, if there is one. `quiet`: nobody else uses the
    store. Then, unless a case is unfinished, no file can be about to be referred
    to."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        file_store: FileStore,
        notes: PrunedCases,
        reader: ReferenceReader,
        remover: CaseRemover,
        reports: Path | None,
        quiet: bool,
    ) -> None:
        self._store = store
        self._clock = clock
        self._file_store = file_store
        self._notes = notes
        self._reader = reader
        self._remover = remover
        self._reports = reports
        self._quiet = quiet

    async def run(self, view: PruneView, request: PruneRequest, progress: Progress) -> PruneView:
        """Carry out a run that has begun; the view at its end. `progress` hears what has gone so far."""
        before, begun = ([], {}) if request.dry_run else await self._finish_earlier()
        groups = await all_case_groups(self._store)
        plan = await self._plan(groups, request, view, before, begun)
        for case in begun.keys() - plan.going.keys():
            await self._notes.withdraw(case)
        spared = [SparedCase(case=case, reason=f"{by} refers to it") for case, by in plan.marked.spared.items()]
        spared += [SparedCase(case=case, reason=ENDED_LATELY) for case in plan.keyed]
        view = replace(view, spared=len(spared), spared_cases=spared[:LISTED_MAX])
        if request.dry_run:
            return self._forecast(view, plan)
        view, gone = await self._remove(view, plan, progress)
        view = await self._sweep(view, request, plan, [*before, *gone])
        named = _named_flow_files(groups, gone)
        count, size = await sweep_flow_files(self._store, named, self._since(view, request, plan))
        return replace(view, documents=view.documents + count, bytes=view.bytes + size)

    async def _finish_earlier(self) -> tuple[list[PrunedDocument], dict[CaseId, str]]:
        """What earlier runs have begun, or left because somebody had asked for it; and why those groups were to go of
        which nothing is removed yet: they are looked at again, since something may refer to them by now."""
        left: list[PrunedDocument] = []
        begun: dict[CaseId, str] = {}
        for note in await self._notes.unfinished():
            if note.state == "removing" and await self._remover.is_whole(note):
                begun[note.id] = note.reason
            elif note.state == "sweeping" or await self._remover.finish(note):
                left.append(note)
        return left, begun

    async def _plan(
        self,
        groups: Mapping[CaseId, CaseGroup],
        request: PruneRequest,
        view: PruneView,
        before: Sequence[PrunedDocument],
        begun: Mapping[CaseId, str],
    ) -> _Plan:
        now = self._clock.now()
        over = {id: group for id, group in groups.items() if group.is_over}
        contents: Mapping[CaseId, CaseGroupContents] = {}
        finished = {id: group.finished() for id, group in over.items()}
        if needs_sizes(request.rules):
            contents = await self._reader.contents(over)
            sizes = await self._file_store.stored_bytes({file for each in contents.values() for file in each.files})
            finished = {
                id: group.finished(contents[id].text_bytes + sum(sizes.get(file, 0) for file in contents[id].files))
                for id, group in over.items()
            }
        reasons = {id: reason for id, reason in begun.items() if id in over}
        reasons |= selected(list(finished.values()), request.rules, now=now)
        reasons |= {id: NAMED for id in request.cases if id in over}
        keyed = [id for id in reasons if groups[id].may_be_asked_for(now)]
        for id in keyed:
            del reasons[id]
        if not reasons and not before:
            return _Plan({}, {}, Marked(spared={}, unreferenced=frozenset()), {}, quiet=False, keyed=keyed)
        chosen = {id: groups[id] for id in reasons}
        contents = contents or await self._reader.contents(chosen)
        names = {file for id in chosen for file in contents[id].files}.union(*(note.files for note in before))
        cases, wanted = await self._reader.kept_references(groups, chosen, names)
        result = marked({id: contents[id].referrers for id in chosen}, cases, wanted)
        if names:
            await self._reader.demand_whole(set().union(*(contents[id].damaged for id in result.spared)))
        unreferenced = result.unreferenced | (set().union(*(note.files for note in before)) - wanted)
        unreferenced -= set().union(*(contents[id].files for id in result.spared))
        result = Marked(spared=result.spared, unreferenced=frozenset(unreferenced))
        going = {
            id: _note(group, reasons[id], view, now, contents[id].files & unreferenced)
            for id, group in chosen.items()
            if id not in result.spared
        }
        quiet = self._quiet and not any(group.live for group in groups.values())
        return _Plan(going, contents, result, await self._file_store.stored_bytes(unreferenced), quiet, keyed)

    def _forecast(self, view: PruneView, plan: _Plan) -> PruneView:
        files = plan.marked.unreferenced.intersection(plan.sizes)
        return replace(
            view,
            cases=len(plan.going),
            documents=sum(len(plan.contents[id].documents) for id in plan.going),
            files=len(files),
            bytes=sum(plan.contents[id].text_bytes for id in plan.going) + sum(plan.sizes[file] for file in files),
            pruned_cases=_listed(plan, list(plan.going.values())),
        )

    async def _remove(self, view: PruneView, plan: _Plan, progress: Progress) -> tuple[PruneView, list[PrunedDocument]]:
        going, gone = list(plan.going.values()), list[PrunedDocument]()
        held: list[PrunedDocument] = []
        for start in range(0, len(going), TOGETHER):
            some = going[start : start + TOGETHER]
            removed = await self._remover.remove(some, plan.contents)
            gone += removed
            ids = {each.id for each in removed}
            held += [each for each in some if each.id not in ids]
            view = replace(
                view,
                cases=len(gone),
                documents=view.documents + sum(len(plan.contents[id].documents) for id in ids),
                bytes=view.bytes + sum(plan.contents[id].text_bytes for id in ids),
                renewed_at=self._clock.now(),
            )
            await progress(view)
        spared = [*view.spared_cases, *(SparedCase(case=each.id, reason=STILL_HELD) for each in held)]
        view = replace(
            view,
            pruned_cases=_listed(plan, gone),
            spared=view.spared + len(held),
            spared_cases=spared[:LISTED_MAX],
        )
        return view, gone

    async def _sweep(
        self, view: PruneView, request: PruneRequest, plan: _Plan, gone: Sequence[PrunedDocument]
    ) -> PruneView:
        """Remove the files of what is gone. What could not be removed yet is noted for the next run."""
        stay = plan.marked.spared.keys() | (plan.going.keys() - {each.id for each in gone})
        kept = set().union(*(plan.contents[id].files for id in stay if id in plan.contents))
        digests = set().union(*(note.files for note in gone)) & plan.marked.unreferenced - kept
        swept = await self._file_store.sweep(sorted(digests), self._since(view, request, plan))
        await asyncio.to_thread(self._remove_reports, [note.id for note in gone])
        later = set(swept.in_use)
        for note in gone:
            note.files = sorted(later.intersection(note.files))
            note.state = "sweeping" if note.files else "gone"
            note.cases = []
        await self._notes.put(gone)
        await self._notes.forget_old(self._clock.now())
        return replace(view, files=swept.removed, bytes=view.bytes + swept.bytes, later_files=len(later))

    def _since(self, view: PruneView, request: PruneRequest, plan: _Plan) -> Instant:
        """What was asked for after this stays."""
        return self._clock.now() if plan.quiet else view.started_at - request.grace_ms

    def _remove_reports(self, cases: Iterable[CaseId]) -> None:
        """Remove what `mendflow run` wrote about these. A report that cannot be removed keeps no case."""
        if self._reports is None:
            return
        for case in cases:
            try:
                (self._reports / f"{case}.html").unlink(missing_ok=True)
            except OSError as error:
                log.warning("the report of case %s could not be removed: %s", case, error, extra={"case": case})


def _named_flow_files(groups: Mapping[CaseId, CaseGroup], gone: Iterable[PrunedDocument]) -> set[str]:
    """The files of flows that the cases name which stay."""
    removed = {note.id for note in gone}
    return set().union(*(group.flow_files for id, group in groups.items() if id not in removed))


def _note(group: CaseGroup, reason: str, view: PruneView, now: Instant, files: set[str]) -> PrunedDocument:
    root = group.root
    assert root is not None
    return PrunedDocument(
        id=group.id,
        flow=root.flow,
        status=root.status,
        started_at=root.started_at,
        ended_at=root.ended_at,
        pruned_at=now,
        by=view.by,
        project=root.project,
        reason=reason,
        stands_for=root.stands_for,
        cases=list(group.cases),
        files=sorted(files),
    )


def _listed(plan: _Plan, notes: Sequence[PrunedDocument]) -> list[PrunedCase]:
    return [
        PrunedCase(
            case=note.id,
            flow=note.flow,
            status=note.status,
            ended_at=note.ended_at,
            bytes=plan.bytes_of(note.id),
            reason=note.reason,
        )
        for note in notes[:LISTED_MAX]
    ]
