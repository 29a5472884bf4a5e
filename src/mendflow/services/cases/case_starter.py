"""Starts a case under a new name.

The server that creates the home document of a new case starts it; the document is created once, so of several servers
that try, one does. A key gives the same candidate names, in the same order, on every server: so it starts one case,
however many servers are asked at once, and wherever a connection broke. All servers skip the name of a case that never
began."""

import hashlib
from collections.abc import Callable
from itertools import count
from typing import Final, NoReturn, Protocol

import msgspec

from mendflow.core.data.case_origins import bounded_origin, is_told_by, origin_flaw
from mendflow.core.engine.activities.job_parts import amounts_at_start
from mendflow.core.engine.dependents import demand_names
from mendflow.core.model.errors import Conflict, InvalidRequest, StoreUnavailable, TemporarilyUnavailable
from mendflow.core.model.flow import Flow, UnhandledPolicy
from mendflow.core.model.ids import CaseId, is_for_one_request
from mendflow.core.model.principals import DEFAULT_PROJECT, Sight
from mendflow.core.model.values import Value
from mendflow.core.model.views import CachePolicy, CaseOrigin
from mendflow.services.base.cluster import CASE_KIND
from mendflow.services.base.contracts import Clock
from mendflow.services.base.homes import HomeRegistry
from mendflow.services.base.hub import Hub
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.visibility import in_sight
from mendflow.services.cases.domain_checks import demand_domains
from mendflow.services.cases.flow_manager import FlowManager
from mendflow.services.cases.flows import FlowDocument, Flows, demand_no_message
from mendflow.services.cases.input_paths import origin_of_paths
from mendflow.services.cases.live_case import CaseDocument
from mendflow.services.cases.staging import FileStaging
from mendflow.services.cases.unstarted_cases import has_begun
from mendflow.stores.contract import FieldCondition, Store

STARTING: Final = "beginning"
STARTING_MS: Final = 5_000
"""How long to wait for another server that starts the same case."""
_POLL_MS = 50
KEY_CHARS_MAX: Final = 255
_decode = msgspec.json.Decoder(CaseDocument).decode


class CaseStartContext(Protocol):
    """The services that take part; all of one runtime."""

    ledger: Ledger
    flows: Flows
    homes: HomeRegistry
    manager: FlowManager
    staging: FileStaging
    hub: Hub


class StartOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What whoever starts a case may say besides its inputs. `cache` says which results of other cases are used,
    `cache_from` names a case whose results are used for unchanged jobs, and `again` jobs that use none. Under one `key`
    there is one case. `notify` is an address that is told of the end. `origin` is where flow and inputs came from. With
    `resume`, a stopped case of the same flow and inputs is continued instead. `rerun_of` names a case that this one
    runs again, and in whose place it stands whatever was corrected; unless `cache` is "none", its results are used.
    `teller` is who says all that, as it is recorded with the origin."""

    cache: CachePolicy = ""
    cache_from: str = ""
    key: str = ""
    notify: str = ""
    origin: CaseOrigin | None = None
    again: list[str] | None = None
    on_unhandled: UnhandledPolicy = ""
    resume: bool = False
    rerun_of: str = ""
    teller: str = ""

    @property
    def told_origin(self) -> CaseOrigin | None:
        """The origin, with who told it, whatever it says itself. Refused if it is too large."""
        if self.origin is None:
            return None
        told = msgspec.structs.replace(self.origin, told_by=self.teller)
        if flaw := origin_flaw(told):
            raise InvalidRequest(f"{flaw}; leave it away", field="origin")
        return told


class CaseStarter:
    """`chance` gives so many random bytes, in hexadecimal. One start uses one runtime from the first read to the last
    write: a later runtime does not know what an earlier one has begun."""

    def __init__(self, runtime: CaseStartContext, store: Store, clock: Clock, chance: Callable[[int], str]) -> None:
        self._runtime = runtime
        self._store = store
        self._clock = clock
        self._chance = chance

    async def start(
        self,
        name: str,
        inputs: dict[str, Value],
        who: str,
        options: StartOptions,
        *,
        cache_from: CaseId | None = None,
        version: FlowDocument | None = None,
    ) -> CaseDocument:
        """Start a case of the newest version of a flow, or of the given one, unless there is one under the key.
        `cache_from` is the case that the options name, by `cache_from` or by `rerun_of`. Without an origin, inputs that
        are paths come from there."""
        if (known := version) is None:
            await self._runtime.flows.refresh(name)
            known = self._runtime.flows.newest(name)
        again, key = options.again or [], options.key
        demand_names(known.flow, again)
        origin = options.told_origin or self._origin_of_paths(known.flow, inputs, options.teller)
        inputs = await self._fixed_inputs(known.flow, inputs, known.project)
        wanted = CaseDocument(
            id=CaseId(""),
            flow=name,
            digest=known.digest,
            inputs=inputs,
            owner=who,
            project=known.project,
            key=key,
            notify=options.notify,
        )
        if key and (earlier := await self._started_before(name, key, known.project)) is not None:
            return demand_same_start(earlier, wanted)
        if flaws := amounts_at_start(known.flow, inputs):
            raise InvalidRequest("\n".join(flaws), problems=flaws)
        if cache_from is None:
            await self._runtime.staging.demand_early_files(known.flow, inputs)
        wanted.rerun_of, wanted.cache, wanted.origin = cache_from, options.cache, origin
        wanted.stands_for = cache_from if options.rerun_of else await self._same_before(wanted, known.flow)
        wanted.again, wanted.on_unhandled = again, options.on_unhandled
        return await self.begin(wanted, known.flow)

    def _origin_of_paths(self, flow: Flow, inputs: dict[str, Value], teller: str) -> CaseOrigin | None:
        """The inputs that are paths here. Where nobody asks, as at a due time, the flow and the schedule name them."""
        if (found := origin_of_paths(flow, inputs)) is None:
            return None
        told_by = teller or self._runtime.staging.path_teller
        return bounded_origin(msgspec.structs.replace(found, told_by=told_by))

    async def _same_before(self, wanted: CaseDocument, flow: Flow) -> CaseId | None:
        """The case whose results are used, if it was of the same flow and inputs: this one stands in its place. Results
        may as well come from a case that did other work."""
        earlier = await self._find_stored(wanted.rerun_of) if wanted.rerun_of else None
        if earlier is None or earlier.flow != wanted.flow:
            return None
        unless_given = {name: declared.default for name, declared in flow.inputs.items()}
        return earlier.id if {**unless_given, **earlier.inputs} == {**unless_given, **wanted.inputs} else None

    async def find_like(
        self,
        name: str,
        inputs: dict[str, Value],
        is_stopped: Callable[[str], bool],
        options: StartOptions,
        version: FlowDocument | None = None,
    ) -> CaseId | None:
        """The newest stopped case of the newest version of a flow, or of the given one, and of the same inputs. A case
        that is to use no earlier results, or not those of some jobs, is like no case that might have."""
        known = version or self._runtime.flows.newest(name)
        stopped = [live.document for id, live in self._runtime.manager.live.items() if is_stopped(id)]
        like = (name, known.digest, known.project)
        alike = [each for each in stopped if (each.flow, each.digest, each.project) == like]
        alike = [each for each in alike if not (each.parent or each.mends) and each.notify == options.notify]
        alike = [each for each in alike if set(each.again) == set(options.again or [])]
        if options.cache == "none":
            alike = [each for each in alike if each.cache in ("", "none")]
        if not alike:
            return None
        wanted = await self._fixed_inputs(known.flow, inputs, known.project)
        alike = [each for each in alike if each.inputs == wanted]
        return max(alike, key=lambda each: each.started_at).id if alike else None

    async def _fixed_inputs(self, flow: Flow, inputs: dict[str, Value], project: str) -> dict[str, Value]:
        fixed = await self._runtime.staging.fixed_inputs(flow, inputs, project)
        return await self._runtime.flows.sealed_inputs(fixed)

    def update_run_options(self, case: CaseId, origin: CaseOrigin | None, on_unhandled: UnhandledPolicy) -> None:
        """A live case is continued by who says anew where its results go, and what a failure does. What is not said
        stays, but of where the results go only what the same one has told."""
        document = self._runtime.manager.live[case].document
        if origin is not None and document.origin is not None and origin.told_by == document.origin.told_by:
            output_dir, report = (
                origin.output_dir or document.origin.output_dir,
                origin.report or document.origin.report,
            )
            origin = msgspec.structs.replace(origin, output_dir=output_dir, report=report)
        options = origin or document.origin, on_unhandled or document.on_unhandled
        if options != (document.origin, document.on_unhandled):
            document.origin, document.on_unhandled = options
            self._runtime.ledger.touch(CASE_KIND, case, document)

    async def begin(self, wanted: CaseDocument, flow: Flow) -> CaseDocument:
        """Start a case like this, which has no id yet, and wait until it is on disk; if there is one with its key,
        return that. Refused if cases of its flow are started by messages."""
        demand_no_message(flow)
        demand_domains(flow, self._runtime.hub)
        begun = await self._start_under_free_name(wanted, flow)
        await self._runtime.ledger.settled()
        return begun

    async def _started_before(self, flow: str, key: str, project: str) -> CaseDocument | None:
        """The case of a project that was started under this key. A key for one request is that of no other flow, and
        its case is found by its name, however many there are."""
        if not is_for_one_request(key):
            return await self.keyed(key, project)
        found = await self.find_keyed(flow, key, project=project)
        return await self.known(found.id) if found is not None else None

    async def keyed(self, key: str, project: str) -> CaseDocument | None:
        """A case of a project that was started under this key, of whatever flow. The search index knows."""
        await self._runtime.ledger.settled()
        where = [FieldCondition("key", key), *in_sight(Sight(frozenset({project})))]
        found = await self._store.search(CASE_KIND, where, limit=1)
        return await self.known(CaseId(found[0].id)) if found else None

    async def project_of(self, flow: str) -> str:
        """The project that the name of a flow is in, also if the flow was removed."""
        flows = self._runtime.flows
        return flows.project_of(flow) or await flows.project_of_removed(flow) or DEFAULT_PROJECT

    async def find_keyed(self, flow: str, key: str, *, project: str = "", port: str = "") -> CaseDocument | None:
        """The case of a flow that was started under this key, by the names that it can have: in this project, or
        at this port. What somebody else has started under the same key is another case."""
        for turn in count():
            found = await self._find_stored(CaseId(f"{flow}-{_draw_name(flow, key, turn)}"))
            if found is None or ((found.key, found.port) == (key, port) and project in ("", found.project)):
                return found
        raise AssertionError("there is always one more name")

    async def known(self, id: CaseId) -> CaseDocument | None:
        """The case of this name, if it has certainly begun."""
        found = await self._find_stored(id)
        if found is None or found.void or not await self._has_begun(found):
            return None
        await self._runtime.ledger.settled()
        return found

    async def _start_under_free_name(self, wanted: CaseDocument, flow: Flow) -> CaseDocument:
        for turn in count():
            wanted.id = CaseId(
                f"{flow.name}-{_draw_name(flow.name, wanted.key, turn) if wanted.key else self._chance(3)}"
            )
            found = await self._claim(wanted.id)
            if found is None:
                return await self._begin_case(wanted, flow)
            if wanted.key and (found.key, found.port, found.project) == (wanted.key, wanted.port, wanted.project):
                return demand_same_start(found, wanted)
        raise AssertionError("there is always one more name")

    async def _claim(self, id: CaseId) -> CaseDocument | None:
        """Claim the name of a new case; if it is taken, return the case that has it."""
        homes, clock = self._runtime.homes, self._clock
        give_up_at = clock.now() + STARTING_MS
        while True:
            found = await self._find_stored(id)
            if found is not None and await self._has_begun(found):
                return found
            if found is None and await homes.claim(id, STARTING, begins=True):
                return await self._find_just_ended(id)
            if clock.now() >= give_up_at:
                raise TemporarilyUnavailable(
                    f"case {id} is just being started by another server; ask again in a moment"
                )
            await clock.sleep(_POLL_MS)

    async def _find_just_ended(self, id: CaseId) -> CaseDocument | None:
        """A case whose name was taken only because it began, and ended, a moment ago."""
        try:
            found = await self._find_stored(id)
        except BaseException:  # the caller has disconnected, or the store is unreachable: the name is free again
            self._runtime.homes.release(id, STARTING)
            raise
        if found is not None and found.live:
            self._reread_everything(f"case {id} had no home, and is taken up here; reading everything again")
        if found is not None:
            self._runtime.homes.release(id, STARTING)
        return found

    async def _find_stored(self, id: CaseId) -> CaseDocument | None:
        live = self._runtime.manager.live.get(id)
        if live is not None:
            return live.document
        found = await self._store.get(CASE_KIND, id)
        return _decode(found.body) if found is not None else None

    async def _has_begun(self, found: CaseDocument) -> bool:
        """Whether the case may be reported. One that another server is starting may never begin."""
        if found.id in self._runtime.manager.live or not found.live:
            return True
        await self._demand_known(found.id)
        return await has_begun(self._store, found.id)

    async def _demand_known(self, id: CaseId) -> None:
        """A write that was given up may have succeeded later: then a case has its home here, and is not in memory."""
        runtime = self._runtime
        await runtime.ledger.settled()
        found = await self._find_stored(id) if await runtime.homes.has_forgotten(id) else None
        if found is not None and found.live and id not in runtime.manager.live:
            self._reread_everything(f"case {id} is at home here, and was not known; reading everything again")

    def _reread_everything(self, reason: str) -> NoReturn:
        self._runtime.ledger.give_up(reason)
        raise StoreUnavailable(reason)

    async def _begin_case(self, wanted: CaseDocument, flow: Flow) -> CaseDocument:
        runtime = self._runtime
        try:
            earlier = await runtime.manager.reader.jobs_of(wanted.rerun_of) if wanted.rerun_of else []
            return (await runtime.manager.begin(wanted, flow, earlier)).document
        finally:
            runtime.homes.release(wanted.id, STARTING)


def demand_key(key: str, field: str) -> None:
    """Refuse a key that is no name."""
    if len(key) > KEY_CHARS_MAX or not key.isprintable():
        what = f"this has {len(key)}" if len(key) > KEY_CHARS_MAX else "some of this cannot be printed"
        text = f"a key is one line of at most {KEY_CHARS_MAX} characters, and {what}: take a digest of it"
        raise InvalidRequest(f"{field}: {text}", field=field)


def demand_run_again(document: CaseDocument, flow: str) -> None:
    """Refuse to let a case of this flow stand for one that it cannot do the work of."""
    if document.parent is not None or document.mends is not None:
        what = f"mends case {document.mends}" if document.mends is not None else f"was called by case {document.parent}"
        raise InvalidRequest(
            f"rerun_of: case {document.id} {what}: only a case that somebody has started is run again", field="rerun_of"
        )
    if document.flow != flow:
        raise InvalidRequest(
            f"rerun_of: case {document.id} is of flow {document.flow}, and not of {flow}: a case is run again with a"
            f" flow of the same name. To use its results in a case of {flow}, name it by `cache_from` (mendflow start"
            f" {flow} --cache-from {document.id})",
            field="rerun_of",
        )


def demand_same_start(found: CaseDocument, wanted: CaseDocument) -> CaseDocument:
    """The case that was started under this key before, if its flow and inputs are the same."""
    if (found.flow, found.project, found.inputs) != (wanted.flow, wanted.project, wanted.inputs):
        raise Conflict(f"the key {found.key!r} was used for case {found.id}, of other flow or inputs; take another")
    return found


def like_earlier(
    earlier: CaseDocument, who: str, teller: str, cache: CachePolicy, changed: dict[str, Value], names: list[str]
) -> CaseDocument:
    """A case like an earlier one, but for the inputs that changed, and the jobs that use no earlier results. It came
    from the same paths if the same one wants it who told them: they are of his machine."""
    return CaseDocument(
        id=CaseId(""),
        flow=earlier.flow,
        digest=earlier.digest,
        inputs={**earlier.inputs, **changed},
        owner=who,
        project=earlier.project,
        rerun_of=earlier.id,
        stands_for=earlier.id,
        cache=cache,
        origin=earlier.origin if is_told_by(earlier.origin, teller) else None,
        again=names,
        on_unhandled=earlier.on_unhandled,
        confined=earlier.confined,
    )


def _draw_name(flow: str, key: str, turn: int) -> str:
    """As good as random, and the same for the same key."""
    return hashlib.sha256(f"{flow}\0{key}\0{turn}".encode()).hexdigest()[:6]
