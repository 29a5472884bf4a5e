"""Deployed flows: the newest version of each by name, and every version by number.

A case stores its own flow, so a new version applies to new cases only. Whoever starts a case from a flow file sends
the flow along. Where somebody has deployed a flow of that name, it stays the newest: schedules, watches and whoever
starts the flow by its name go on with it. Where nobody has, what was sent along is known by its name, as tentative."""

import hashlib
from collections.abc import AsyncIterator, Iterator

import msgspec
from msgspec.structs import replace

from mendflow.core.engine import compile_flow
from mendflow.core.engine.files_beside import unsent_files
from mendflow.core.engine.plan import walk_activities
from mendflow.core.model.errors import BadFlow, Conflict, InvalidRequest, NotFound
from mendflow.core.model.flow import Flow, PrimitiveStep
from mendflow.core.model.flow_files import file_flaw
from mendflow.core.model.ids import Instant
from mendflow.core.model.principals import DEFAULT_PROJECT, EVERYTHING, Sight
from mendflow.core.model.values import Value
from mendflow.core.model.views import FlowView
from mendflow.core.recovery.primitive_checks import step_problems
from mendflow.lazy import lazy_pattern
from mendflow.services.base.contracts import TRIES, Clock
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.projects import kept_project
from mendflow.services.base.readable_documents import demand_readable, read_or_leave_out
from mendflow.services.base.sealing import Sealer
from mendflow.services.cases.flow_compiler import FlowCompiler
from mendflow.services.cases.flow_file_store import FlowFileStore
from mendflow.stores.contract import Store, StoredDocument

FLOW_KIND = "flow"
OF_PROJECT = "@"
"""No name of a flow has this."""
FORMER_OWNERS_MAX = 10_000
VERSION_KIND = "flow-version"

# A flow's name becomes part of ids, addresses and folders, so one that could be mistaken for a path is refused.
# Made-up names of called flows contain dots, which given names do not.
_NAME = lazy_pattern(r"[A-Za-z_][A-Za-z0-9_.-]{0,99}")


class FlowDocument(msgspec.Struct, kw_only=True):
    """`tentative`: nobody has deployed it, a case was started from its file; the next such file replaces it.
    A document of an older version does not say so, and counts as deployed."""

    name: str
    digest: str
    version: int
    deployed_at: Instant
    deployed_by: str = ""
    project: str = DEFAULT_PROJECT
    tentative: bool = False
    flow: Flow

    def view(self, *, whole: bool) -> FlowView:
        return FlowView(
            name=self.name,
            digest=self.digest,
            version=self.version,
            deployed_at=self.deployed_at,
            deployed_by=self.deployed_by,
            project=self.project,
            description=self.flow.description,
            tentative=self.tentative,
            flow=self.flow if whole else None,
        )


class _FlowVersion(msgspec.Struct):
    """What is read of a version that is known no longer than its flow was."""

    version: int
    digest: str = ""
    project: str = DEFAULT_PROJECT
    tentative: bool = False


_decode = msgspec.json.Decoder(FlowDocument).decode
_decode_version = msgspec.json.Decoder(_FlowVersion).decode


def check_names(flow: Flow) -> None:
    """Refuse names of flows that could be mistaken for paths, in the flow and in those that are sent along."""
    if bad := [name for name in _names(flow) if not _NAME.fullmatch(name)]:
        rule = "use letters, digits, _ and -, a letter first, at most 100"
        raise BadFlow(problems=[f"{name[:100]!r} is not a valid name for a flow: {rule}" for name in bad])


def demand_no_message(flow: Flow) -> None:
    """Refuse to start a flow whose cases are started by messages: nothing else can start one."""
    if flow.xml is not None and compile_flow(flow, taken=True).begins:
        where = f"/soap/flows/{flow.name}"
        raise Conflict(f"a case of {flow.name} begins with a message: send one to {where}, or try it with mendflow run")


def _names(flow: Flow) -> Iterator[str]:
    yield flow.name
    for called in flow.calls:
        yield from _names(called)


def _without_files(flow: Flow) -> Flow:
    calls = tuple(_without_files(called) for called in flow.calls)
    return flow if flow.source is None and calls == flow.calls else replace(flow, source=None, calls=calls)


class Flows:
    def __init__(self, store: Store, ledger: Ledger, clock: Clock, sealer: Sealer, compiler: FlowCompiler) -> None:
        self.compiler = compiler
        self.files = FlowFileStore(store, ledger, clock)
        self._sealer = sealer
        self._store = store
        self._ledger = ledger
        self._clock = clock
        self._newest: dict[str, FlowDocument] = {}
        self._read: dict[str, int] = {}  # the versions of the documents that these were read from
        self._former_owners: dict[str, str | None] = {}  # of names that are no flow's: whose flow had it

    async def start(self) -> None:
        """Load the deployed flows, again where other servers may have deployed or removed some."""
        before, there = dict(self._read), set()
        async for found in self._store.scan(FLOW_KIND):
            there.add(found.id)
            self._take(found)
        for name in before.keys() - there:
            if self._read.get(name) == before[name]:  # else it was deployed meanwhile
                self._forget(name)

    async def refresh(self, name: str) -> None:
        """Where other servers may have deployed a newer version: load it."""
        before = self._read.get(name)
        found = await self._store.get(FLOW_KIND, name)
        if found is not None:
            self._take(found)
        elif before is not None and self._read.get(name) == before:
            self._forget(name)

    def _forget(self, name: str) -> None:
        self._former_owners.pop(name, None)
        self._newest.pop(name, None)
        self._read.pop(name, None)

    def _take(self, found: StoredDocument) -> None:
        if self._read.get(found.id, 0) >= found.version:
            return
        self._read[found.id] = found.version
        document = read_or_leave_out(found, _decode, "deploy the flow again with mendflow flows deploy")
        if document is not None:
            self._newest[found.id] = document

    @staticmethod
    def digest(flow: Flow) -> str:
        return hashlib.sha256(msgspec.json.encode(flow)).hexdigest()[:16]

    async def sealed(self, flow: Flow) -> Flow:
        """The flow as it may be stored: without passwords in the clear, and without the files that it and the flows
        that come with it were read from."""
        return await self._sealer.sealed(_without_files(flow))

    async def sealed_inputs(self, inputs: dict[str, Value]) -> dict[str, Value]:
        """The inputs of a case as they may be stored."""
        return await self._sealer.sealed(inputs)

    async def deploy(self, flow: Flow, *, who: str = "", project: str = "") -> FlowView:
        """Make this the newest version. Deploying an unchanged flow makes no new version. A flow that is there stays in
        its project; refused if that is another than the given one."""
        return (await self._store_version(flow, who, project, tentative=False)).view(whole=False)

    async def version_sent_with_start(self, flow: Flow, *, who: str = "", project: str = "") -> FlowDocument:
        """The version of a flow that one case is started with. It becomes the newest only where nobody has deployed a
        flow of its name; a flow that is there stays in its project."""
        await self.refresh(flow.name)
        return await self._store_version(flow, who, project, tentative=True)

    async def adopt(self, name: str, *, who: str) -> None:
        """The newest version is meant to stay: from now on it is replaced only by deploying another."""
        for _ in range(TRIES):
            newest = self.newest(name)
            if not newest.tentative:
                return
            made = replace(newest, deployed_at=self._clock.now(), deployed_by=who, tentative=False)
            if await self._put(made):
                await self.files.adopt(made.name, made.digest)
                return
            await self.refresh(name)
        raise Conflict(f"flow {name} is deployed by several at once, again and again; try once more")

    async def _store_version(self, flow: Flow, who: str, project: str, *, tentative: bool) -> FlowDocument:
        if flow.source is not None and (flaw := file_flaw(flow.source.file)):
            raise InvalidRequest(
                f"the flow's `source.file` is {flow.source.file!r:.100}, and {flaw}; send the name of its file alone,"
                " such as night.yaml",
                field="source.file",
            )
        made = await self._store_model(_without_files(flow), who, project, tentative=tentative)
        if flow.source is not None and not (tentative and await self._is_deployed_without_file(made)):
            await self.files.put(made.name, made.digest, flow.source, who=who, tentative=tentative)
        elif not tentative:
            await self.files.adopt(made.name, made.digest)
        return made

    async def _is_deployed_without_file(self, made: FlowDocument) -> bool:
        """Whether somebody has deployed this very model, now or earlier, and gave no file: it gets none of others."""
        if await self.files.is_kept(made.name, made.digest):
            return False
        newest = self._newest.get(made.name)
        if newest is not None and newest.digest == made.digest:
            return not newest.tentative
        versions = [each async for each in self._versions(made.name)]
        return any(each.digest == made.digest and not each.tentative for each in versions)

    async def _store_model(self, flow: Flow, who: str, project: str, *, tentative: bool) -> FlowDocument:
        check_names(flow)
        await self.compiler.check(flow)
        if unsent := unsent_files(flow):
            raise BadFlow(problems=unsent)
        flow = await self.sealed(flow)
        if problems := list(step_problems(each for each in walk_activities(flow) if isinstance(each, PrimitiveStep))):
            raise BadFlow(problems=problems)
        digest = self.digest(flow)
        for _ in range(TRIES):
            newest = self._newest.get(flow.name)
            last = newest or await self._removed(flow.name)
            stays_in = kept_project(f"flow {flow.name}", last.project if last is not None else None, project)
            is_same = newest is not None and newest.digest == digest
            if newest is not None and is_same and (tentative or not newest.tentative):
                return newest
            made = FlowDocument(
                name=flow.name,
                digest=digest,
                version=last.version + (0 if is_same else 1) if last is not None else 1,
                deployed_at=self._clock.now(),
                deployed_by=who,
                project=stays_in,
                tentative=tentative,
                flow=flow,
            )
            if (tentative and newest is not None and not newest.tentative) or await self._put(made):
                return made
            await self.refresh(flow.name)
        raise Conflict(f"flow {flow.name} is deployed by several at once, again and again; deploy it once more")

    async def _removed(self, name: str) -> "_FlowVersion | None":
        """The last version of a flow that was removed; None if there was none of this name."""
        return max([each async for each in self._versions(name)], key=lambda each: each.version, default=None)

    async def _versions(self, name: str) -> AsyncIterator["_FlowVersion"]:
        async for found in self._store.scan(VERSION_KIND, f"{name}@"):
            yield _decode_version(found.body)

    async def project_of_removed(self, name: str) -> str | None:
        """The project that a name of a flow stays in when the flow is removed: its cases, rules and statistics are
        found by that name."""
        last = await self._removed(name)
        return last.project if last is not None else None

    async def remove(self, name: str) -> FlowView:
        """Nobody can start it from now on. Its cases have their own copies of it, and keep the files of their versions;
        its versions stay known."""
        for _ in range(TRIES):
            await self.refresh(name)
            removed = self.newest(name)
            if await self._ledger.put_now(FLOW_KIND, name, None, self._read[name]) is not None:
                self._forget(name)
                await self.files.drop_unnamed(name)
                return removed.view(whole=False)
        raise Conflict(f"flow {name} is deployed by somebody else, again and again; try once more")

    async def _put(self, document: FlowDocument) -> bool:
        """Whether it is the newest now; not if somebody else was faster."""
        name = document.name
        if document.tentative:  # nobody has said that it is to be replaced
            demand_readable(await self._store.get(FLOW_KIND, name), _decode)
        put_at = await self._ledger.put_now(FLOW_KIND, name, document, self._read.get(name, 0))
        if put_at is None:
            return False
        if self._read.get(name, 0) < put_at:
            self._newest[name], self._read[name] = document, put_at
        await self._put_version(document)
        return True

    async def _put_version(self, document: FlowDocument) -> None:
        """Another server may have deployed it since: then it stays deployed."""
        id = f"{document.name}@{document.version}"
        for _ in range(TRIES):
            before = await self._store.get(VERSION_KIND, id)
            if before is not None and not _decode_version(before.body).tentative:
                return
            version = before.version if before is not None else 0
            if await self._ledger.put_now(VERSION_KIND, id, document, version) is not None:
                return
        raise Conflict(f"flow {document.name} is deployed by several at once, again and again; deploy it once more")

    def all(self) -> list[FlowView]:
        return [document.view(whole=False) for _, document in sorted(self._newest.items())]

    def deployed(self, name: str) -> FlowDocument | None:
        """The newest version of a flow, if it is known here."""
        return self._newest.get(name)

    def project_of(self, name: str) -> str | None:
        """The project of a flow, if it is known here."""
        document = self._newest.get(name)
        return document.project if document is not None else None

    async def counted_name(self, flow: str, project: str) -> str:
        """What a case of a flow is counted by. Whoever sends a flow along names it: where the name is not that of a
        flow of the project, the project is added. A name that nobody has, or had, is counted as the default
        project's. Raises StoreUnavailable."""
        owner = self.project_of(flow)
        if owner is None:
            owner = await self._former_owner(flow)
        return flow if (owner or DEFAULT_PROJECT) == project else f"{flow}{OF_PROJECT}{project}"

    async def _former_owner(self, name: str) -> str | None:
        if name not in self._former_owners:
            found = await self.project_of_removed(name)
            if len(self._former_owners) >= FORMER_OWNERS_MAX:
                self._former_owners.clear()
            self._former_owners[name] = found
        return self._former_owners[name]

    def newest(self, name: str, sight: Sight = EVERYTHING) -> FlowDocument:
        """The refusal does not name the others: they may be of other projects."""
        document = self._newest.get(name)
        if document is None or not sight.sees(document.project):
            raise NotFound(
                f"there is no flow {name!r} here; `mendflow flows` lists those that are, and `mendflow flows deploy"
                " FILE` makes another known"
            )
        return document

    def of_project(self, name: str, project: str) -> FlowDocument | None:
        """The newest version of a flow, if it is known here and in this project: what a case calls by its name."""
        document = self._newest.get(name)
        return document if document is not None and document.project == project else None

    async def find(self, name: str, project: str) -> tuple[Flow, str]:
        """A flow that another calls, or that rules name: one of its own project. The refusal does not name the others:
        the case may be another domain's."""
        document = self.of_project(name, project)
        if document is None:
            raise NotFound(f"there is no flow {name!r} here; `mendflow flows deploy FILE` makes it known")
        return document.flow, document.digest
