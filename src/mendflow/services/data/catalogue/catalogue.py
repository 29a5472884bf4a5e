"""The names and replicas of logical files, for people, for flows and for pilots.

A job that publishes a file asks for a place when it has the file, with its digest. That reserves the name for this
content and this job: a job that comes with other content under the same name is refused before it has written anything,
and an outcome can only publish what its job asked a place for. The place becomes a replica when the job's outcome is
recorded in its case, before the case continues. Reported again, it is the same document. A name that is reserved for a
job that is over, and of which nothing was published, is free.

A place has one name, see `holds`: each place that is given out or registered as a replica is claimed for its file,
after the file's document names it."""

from collections.abc import AsyncIterator, Callable, Collection, Sequence, Set
from typing import Final, Protocol

from msgspec.structs import replace

from mendflow.core.data.elements import is_writable
from mendflow.core.data.name_mapping import place_of, replica_place
from mendflow.core.data.paths import logical_name, name_flaw
from mendflow.core.model.data import (
    LocateAnswer,
    LocateRequest,
    LogicalFile,
    OutputPlacement,
    PlaceAnswer,
    PlaceRequest,
    Publication,
    Replica,
    ReplicaLocation,
    StorageElement,
)
from mendflow.core.model.errors import Conflict, Forbidden, InvalidRequest, NotFound, RequestError
from mendflow.core.model.faults import AttemptStage, Category, Fault
from mendflow.core.model.ids import Instant, JobId, PilotId
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.values import FileRef
from mendflow.core.recovery.ids import flow_job_id
from mendflow.lazy import lazy_pattern
from mendflow.services.base.contracts import Clock
from mendflow.services.base.hub import Hub
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.projects import kept_project
from mendflow.services.data.catalogue.elements import StorageElementRegistry
from mendflow.services.data.catalogue.files import LogicalFileStore
from mendflow.services.data.catalogue.holds import PlaceStore
from mendflow.services.data.catalogue.writers import WritingJobs
from mendflow.stores.contract import Store

SHA256: Final = lazy_pattern(r"[0-9a-f]{64}")
REPLICAS_MAX: Final = 1_000
NAMES_MAX: Final = 10_000
LEFT_OVER_MAX: Final = 16
NO_CONTENT: Final = "a file has a SHA-256, in small hexadecimal digits, and a size"
NOT_PUBLISHED: Final = "notPublished"
"""The fault of a job that completed, but whose file could not get its name."""


class NewFiles(Protocol):
    async def added(self, file: LogicalFile) -> None:
        """Called for each file that can be read from now on, again if it is not certain that the call succeeded;
        nothing is acknowledged before this has returned."""
        ...


class Catalogue:
    def __init__(self, store: Store, ledger: Ledger, clock: Clock, hub: Hub) -> None:
        self.elements = StorageElementRegistry(store, ledger)
        self.files = LogicalFileStore(store, ledger)
        self._holds = PlaceStore(store, ledger, self.files, self.elements)
        self._writers = WritingJobs(store)
        self._clock = clock
        self._listener = hub.need(NewFiles, self)

    # For people

    async def add(self, given: LogicalFile, *, project: str = "") -> LogicalFile:
        """Add a file that exists on storage elements; if it is known already, add the new replicas. Refused if a
        project is given and the name belongs to another."""
        await self._check(given)
        spots = await self._holds.of(given.name, given.replicas)
        await self._holds.look(given.name, spots, given.project, given.ref())
        name, now = given.name, self._clock.now()
        blank = LogicalFile(name=name, sha256=given.sha256, bytes=given.bytes, project=given.project)
        free = await self._writers.free(await self.files.find(name), given.ref())

        def merged(before: LogicalFile | None) -> LogicalFile:
            kept_project(f"the name {name}", before.project if before is not None else None, project)
            old = blank if before is None or before == free else before
            if (taken := _conflict_text(old, given.ref())) is not None:
                raise Conflict(taken, name=name)
            return replace(
                old,
                replicas=tuple(dict.fromkeys((*old.replicas, *given.replicas))),
                data_set=old.data_set or given.data_set,
                added_at=old.added_at if old.replicas else now,
                meta={**old.meta, **given.meta},
            )

        return await self._apply_change(name, merged, given.replicas)

    async def _check(self, given: LogicalFile) -> None:
        logical_name(given.name)
        if given.name.startswith("lfn:"):
            raise InvalidRequest("a name in the catalogue has no `lfn:` before it", field="name")
        if not SHA256.fullmatch(given.sha256) or given.bytes < 0:
            raise InvalidRequest(NO_CONTENT, field="sha256")
        if not 0 < len(given.replicas) <= REPLICAS_MAX:
            raise InvalidRequest(f"say where the file is: it has {len(given.replicas)} replicas", field="replicas")
        texts = [given.data_set, *given.meta.keys(), *given.meta.values()]
        if len(texts) > 200 or any(len(text) > 1000 or not text.isprintable() for text in texts):
            raise InvalidRequest("the metadata of a file is at most 100 short texts", field="meta")
        for replica in given.replicas:
            replica_place(await self.elements.get(replica.element), given.name, replica)

    async def remove(self, name: str) -> LogicalFile:
        """Forget a file. Its content on storage elements is not deleted."""
        known = await self.files.get(name)
        await self.files.change(known.name, lambda _: None)
        await self._holds.release(known.name, await self._holds.of(known.name, known.replicas))
        return known

    async def add_replica(self, name: str, replica: Replica) -> LogicalFile:
        known = await self.files.get(name)
        return await self.add(replace(known, replicas=(replica,), data_set="", meta={}))

    async def remove_replica(self, name: str, replica: Replica) -> LogicalFile:
        """Forget one replica of a file; the last one cannot be removed while the file is known."""
        known = await self.files.get(name)

        def without(before: LogicalFile | None) -> LogicalFile | None:
            if before is None or replica not in before.replicas:
                raise NotFound(f"file {known.name} has no such replica on {replica.element}")
            if len(before.replicas) == 1:
                raise Conflict(f"this is the last replica of {known.name}; remove the file instead", name=known.name)
            return replace(before, replicas=tuple(each for each in before.replicas if each != replica))

        changed = await self.files.change(known.name, without)
        assert changed is not None
        await self._holds.release(known.name, await self._holds.of(known.name, [replica]))
        return changed

    # For flows and data sets

    async def resolve(self, name: str, project: str = "") -> FileRef:
        """The file with this logical name, with `lfn:` or without; if a project is given, only a file of that. Raises
        NotFound."""
        found = await self.files.get(logical_name(name), project)
        if not found.replicas:
            raise NotFound(f"{found.name} lies nowhere yet: {self._awaited_text(found)}")
        return found.ref()

    async def has(self, ref: FileRef) -> bool:
        """Whether a file that was published can still be read."""
        found = await self.files.find(ref.logical)
        return found is not None and bool(found.replicas) and found.sha256 == ref.sha256

    def of_set(self, data_set: str, since: Instant) -> AsyncIterator[LogicalFile]:
        return self.files.of_set(data_set, since)

    async def published(self, job: JobId, outcome: Outcome) -> Outcome:
        """Record the files that a job published. Returns the outcome for the case: a failure, if a name was given to
        other content meanwhile."""
        refs = {name: ref for name, ref in outcome.files.items() if ref.logical}
        if outcome.fault is not None or not refs:
            return outcome
        for name, ref in refs.items():
            try:
                await self._publish(flow_job_id(job), ref)
            except (Conflict, InvalidRequest) as error:
                fault = Fault(
                    name=NOT_PUBLISHED,
                    category=Category.OUTPUT,
                    message=f"{name}: {error.message}",
                    stage=AttemptStage.STAGE_OUT,
                    file=name,
                    data={"logical": ref.logical, "element": "", "reason": error.message},
                )
                return Outcome(fault=fault, measures=outcome.measures, log_tail=outcome.log_tail)
        return outcome

    async def _publish(self, job: JobId, ref: FileRef) -> None:
        now = self._clock.now()

        def accepted(before: LogicalFile | None) -> LogicalFile:
            if before is None:
                raise Conflict(f"job {job} reports {ref.logical}, for which it asked no place")
            if (taken := _conflict_text(before, ref)) is not None:
                raise Conflict(taken)
            target = before.writing.get(job)
            if target is None:
                if not before.replicas:
                    raise Conflict(f"job {job} reports {ref.logical}, for which it asked no place")
                return before
            return replace(
                before,
                replicas=tuple(dict.fromkeys((*before.replicas, target))),
                made_by=before.made_by or job,
                added_at=before.added_at if before.replicas else now,
                writing={each: where for each, where in before.writing.items() if each != job},
            )

        await self._apply_change(logical_name(ref.logical), accepted)

    async def _apply_change(
        self, name: str, change: Callable[[LogicalFile | None], LogicalFile], listed: Sequence[Replica] = ()
    ) -> LogicalFile:
        """Change a file that has the replicas `listed`, or else all that it has after the change; publishes the file if
        these are its own."""
        before: tuple[Replica, ...] = ()

        def seen(now: LogicalFile | None) -> LogicalFile:
            nonlocal before
            before = now.replicas if now is not None else ()
            return change(now)

        changed = await self.files.change(name, seen)
        assert changed is not None
        try:
            spots = await self._holds.of(name, listed or changed.replicas)
            await self._holds.claim(name, spots, changed.project, changed.ref())
        except Conflict:
            fresh = {each for each in changed.replicas if each not in before}
            await self.files.change(name, lambda now: now and _without_replicas(now, replicas=fresh))
            raise
        await self._listener().added(changed)
        return changed

    # For pilots

    async def locate(self, request: LocateRequest, *, projects: Collection[str] = ()) -> LocateAnswer:
        """Where files can be read. To a pilot that works for some projects only, those of others are not there."""
        _demand_not_too_many(request.names)
        if not request.names:
            return LocateAnswer(near=await self.elements.find(request.storage) if request.storage else None)
        known = await self.files.many([name for name in request.names if not name_flaw(name)])
        files: dict[str, list[ReplicaLocation]] = {}
        wrong: dict[str, str] = {}
        for name in request.names:
            file = known.get(name)
            if file is not None and projects and file.project not in projects:
                file = None
            if file is None or not file.replicas:
                why = self._awaited_text(file) if file is not None else "the catalogue does not know it"
                wrong[name] = f"{name:.200} cannot be read anywhere: {why}"
                continue
            places, flaws = await self._places(file, request)
            if places:
                files[name] = places
            else:
                wrong[name] = f"{name:.200} cannot be read anywhere: {'; '.join(flaws)}"
        return LocateAnswer(files=files, wrong=wrong)

    async def _places(self, file: LogicalFile, request: LocateRequest) -> tuple[list[ReplicaLocation], list[str]]:
        places: list[tuple[int, ReplicaLocation]] = []
        flaws: list[str] = []
        for replica in file.replicas:
            element = await self.elements.find(replica.element)
            if element is None:
                flaws.append(f"the storage element {replica.element} no longer exists")
                continue
            try:
                url = replica_place(element, file.name, replica, request.site)
            except RequestError as error:
                flaws.append(error.message)
                continue
            places.append(
                (_distance(element, request.site, request.storage), ReplicaLocation(element=element, url=url))
            )
        return [place for _, place in sorted(places, key=lambda each: each[0])], flaws

    async def places(self, name: str, *, site: str = "", storage: str = "") -> list[ReplicaLocation]:
        """The places where a pilot would read a file, the nearest first. Raises NotFound."""
        name = logical_name(name)
        answer = await self.locate(LocateRequest(pilot=PilotId(""), names=[name], site=site, storage=storage))
        if name in answer.wrong:
            raise NotFound(answer.wrong[name])
        return answer.files[name]

    async def place(self, request: PlaceRequest, *, who: str = "") -> PlaceAnswer:
        """The places that the outputs of a running job go to, each reserved for this job and this content from now
        on."""
        _demand_not_too_many(request.files)
        spec = await self._writers.running(request.job, request.pilot, who)
        files: dict[str, ReplicaLocation] = {}
        wrong: dict[str, str] = {}
        replaces: dict[str, tuple[str, ...]] = {}
        for output, placing in request.files.items():
            if spec.publish.get(output) != placing.publication:
                raise Forbidden(f"job {request.job} is to publish no {output!r:.80} like this")
            try:
                files[output], replaces[output] = await self._place(placing, request, spec.project)
            except RequestError as error:
                wrong[output] = error.message
        return PlaceAnswer(files=files, wrong=wrong, replaces={name: left for name, left in replaces.items() if left})

    async def _place(
        self, placing: OutputPlacement, request: PlaceRequest, project: str
    ) -> tuple[ReplicaLocation, tuple[str, ...]]:
        """A place, and the digests of what may be replaced there."""
        wanted, job = placing.publication, flow_job_id(request.job)
        if not SHA256.fullmatch(placing.file.sha256) or placing.file.bytes < 0:
            raise InvalidRequest(NO_CONTENT, field="sha256")
        element = await self._target(wanted, request)
        located = ReplicaLocation(element=element, url=place_of(element, wanted.logical, request.site))
        target = Replica(element=element.name)
        spots = await self._holds.of(wanted.logical, [target], request.site)
        await self._holds.look(wanted.logical, spots, project)
        free = await self._writers.free(await self.files.find(wanted.logical), placing.file, unless=job)
        fresh = LogicalFile(
            name=wanted.logical,
            sha256=placing.file.sha256,
            bytes=placing.file.bytes,
            data_set=wanted.data_set,
            project=project,
        )

        def kept(before: LogicalFile | None) -> LogicalFile:
            if before is not None and before.project != project:
                raise Conflict(f"the name {before.name} belongs to another project; publish under another")
            old = _replacement(before, fresh) if before is None or before == free else before
            if (taken := _conflict_text(old, placing.file)) is not None:
                raise Conflict(taken, name=old.name)
            data_set = old.data_set or wanted.data_set
            return replace(old, data_set=data_set, writing={**old.writing, job: target})

        changed = await self.files.change(wanted.logical, kept)
        assert changed is not None
        try:
            await self._holds.claim(wanted.logical, spots, project)
        except Conflict:
            await self.files.change(wanted.logical, lambda now: now and _without_replicas(now, writing={job}))
            raise
        return located, changed.left

    async def _target(self, wanted: Publication, request: PlaceRequest) -> StorageElement:
        """The storage element that a file goes to: the named one, else the one that is nearest to the pilot."""
        if name := wanted.element:
            element = await self.elements.find(name)
            if element is None:
                raise NotFound(f"{wanted.logical} is to go to the storage element {name!r:.100}, which is not known")
            if not is_writable(element):
                raise Conflict(f"{wanted.logical} is to go to the storage element {name}, which is only read from")
            return element
        near = self._reachable(request)
        if not near or min(near, key=lambda each: each[0])[0] > SAME_SITE:
            await self.elements.start()  # another server may have added a nearer one a moment ago
            near = self._reachable(request)
        if not near:
            at = f"the site {request.site!r}" if request.site else "a pilot without a site"
            raise NotFound(
                f"{wanted.logical} has nowhere to go: no storage element that can be written to is near {at}; "
                "name one in `publish`, or add one"
            )
        return min(near, key=lambda each: each[0])[1]

    def _reachable(self, request: PlaceRequest) -> list[tuple[int, StorageElement]]:
        writable = [each for each in self.elements.known() if is_writable(each) and each.name not in request.avoid]
        known = [(_distance(each, request.site, request.storage), each) for each in writable]
        return [each for each in known if each[0] < UNREACHABLE]

    def _awaited_text(self, file: LogicalFile) -> str:
        if not file.writing:
            return "it has no replica"
        return f"job {', '.join(sorted(file.writing))} has not ended yet that writes it, or never published it"


OWN_STORAGE, SAME_SITE, SHARED, UNREACHABLE = range(4)


def _distance(element: StorageElement, site: str, storage: str) -> int:
    """How far an element is from a pilot; an element that names no sites is equally near to all."""
    if element.name == storage:
        return OWN_STORAGE
    if site and site in element.sites:
        return SAME_SITE
    return UNREACHABLE if element.sites else SHARED


def _replacement(given_up: LogicalFile | None, fresh: LogicalFile) -> LogicalFile:
    """A file under a name that was reserved for other content. That content may still be there, and belongs to
    nobody."""
    if given_up is None:
        return fresh
    left = dict.fromkeys((*given_up.left, given_up.sha256))
    return replace(fresh, left=tuple(each for each in left if each != fresh.sha256)[-LEFT_OVER_MAX:])


def _without_replicas(
    file: LogicalFile, replicas: Set[Replica] = frozenset(), writing: Set[str] = frozenset()
) -> LogicalFile | None:
    """The file without the replicas that were refused; None, if none are left."""
    rest = replace(
        file,
        replicas=tuple(each for each in file.replicas if each not in replicas),
        writing={job: where for job, where in file.writing.items() if job not in writing},
    )
    return rest if rest.replicas or rest.writing else None


def _conflict_text(known: LogicalFile, ref: FileRef) -> str | None:
    """The error message for a file with other content."""
    if (known.sha256, known.bytes) == (ref.sha256, ref.bytes):
        return None
    return (
        f"{known.name} is another file already ({known.sha256[:12]}, {known.bytes} bytes, not {ref.sha256[:12]}, "
        f"{ref.bytes} bytes), and a name never gets another content; take another name"
    )


def _demand_not_too_many(asked: Sequence[str] | dict[str, OutputPlacement]) -> None:
    if len(asked) > NAMES_MAX:
        raise InvalidRequest(f"{len(asked)} files are too many for one question; ask for {NAMES_MAX} at most")
