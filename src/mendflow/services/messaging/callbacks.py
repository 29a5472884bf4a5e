"""Sends callbacks when jobs end. A callback is a document until it is delivered, and is retried until then.

It is written before the subscription is acknowledged, and deleted after the callback was delivered. So a server that is
killed at any point sends it once more, and never forgets it: whoever gets it twice gets the same. A callback that
nobody accepts for a whole day is given up, and the administrator is told."""

import hashlib
from collections.abc import Awaitable, Callable, Collection
from functools import partial
from typing import Final, Protocol

import msgspec

from mendflow.address_guard import check_url
from mendflow.core.model.errors import InvalidRequest, NotFound, RequestError, StoreUnavailable
from mendflow.core.model.ids import CaseId
from mendflow.core.model.principals import Sight
from mendflow.core.model.values import Value
from mendflow.core.soap.envelope import MESSAGE_ID, OURS, header, write_envelope
from mendflow.lazy import lazy_pattern
from mendflow.services.base.cluster import root_of
from mendflow.services.base.contracts import Clock
from mendflow.services.base.delivery import PATIENCE_MS, Outbox, RetryingSender
from mendflow.services.base.homes import HomeRegistry
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.notices import Notices
from mendflow.services.base.poster import Poster
from mendflow.services.cases.live_case import CaseDocument
from mendflow.services.messaging.ports.job_messages import NOTIFY, NOTIFY_ACTION, demand_address, outcome_element
from mendflow.services.messaging.ports.messages import as_message
from mendflow.stores.contract import Store

CALLBACK_KIND: Final = "callback"
FLOW_ADDRESS: Final = lazy_pattern(r"mendflow:flows/([^/]+)/([^/]+)")
"""The address of a partner link of a flow, whichever server it is on."""


class CallbackTarget(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A SOAP address, with the `soap_headers` to send; or a channel of a flow here; or the administrator, who is told
    of failures only. `project` was that of the flow when somebody asked for this who may send it messages. `own` is
    false if somebody else has asked for the job."""

    url: str = ""
    soap_headers: tuple[str, ...] = ()
    flow: str = ""
    channel: str = ""
    project: str = ""
    administrator: bool = False
    own: bool = True


ADMINISTRATOR: Final = CallbackTarget(administrator=True)


class CallbackDocument(msgspec.Struct, kw_only=True, omit_defaults=True):
    id: str
    job: CaseId
    to: CallbackTarget
    tries: int = 0


class MessageSink(Protocol):
    async def post(
        self, flow: str, channel: str, message: dict[str, Value], *, id: str, who: str, sight: Sight
    ) -> object: ...


CaseLookup = Callable[[str], Awaitable[CaseDocument | None]]


class Callbacks:
    """`find` returns the case of a job; `router` takes messages for flows of this server, and `project_of` says whose a
    flow is, None if there is none."""

    def __init__(
        self,
        *,
        store: Store,
        ledger: Ledger,
        clock: Clock,
        homes: HomeRegistry,
        notices: Notices,
        poster: Poster,
        find: CaseLookup,
        router: MessageSink,
        project_of: Callable[[str], str | None],
        chance: Callable[[], float],
    ) -> None:
        self._ledger = ledger
        self._notices = notices
        self._poster = poster
        self._find = find
        self._sender = RetryingSender(clock, chance)
        self.router = router
        self._project_of = project_of
        self._outbox = Outbox(CALLBACK_KIND, CallbackDocument, store, ledger, homes)
        self._by_job: dict[CaseId, list[CallbackDocument]] = {}

    async def load(self, roots: Collection[CaseId]) -> None:
        """Continue with the callbacks of these trees, before their cases are loaded."""
        async for callback in self._outbox.load(roots):
            self._by_job.setdefault(callback.job, []).append(callback)

    async def resume(self, roots: Collection[CaseId]) -> None:
        """After the cases of these trees were loaded: send the callbacks of those that have ended meanwhile."""
        for job in [each for each in self._by_job if root_of(each) in roots]:
            document = await self._find(job)
            if document is None or not document.live:
                self._deliver_all(job)

    async def stop(self) -> None:
        await self._outbox.stop()

    def check(
        self, address: str, soap_headers: tuple[str, ...] = (), *, may_tell: Callable[[str], bool]
    ) -> CallbackTarget:
        """Check an address. Raises InvalidRequest if nothing may be sent there. `may_tell` says whether whoever asks
        may send messages to the flows of a project."""
        demand_address(address)
        if (here := FLOW_ADDRESS.fullmatch(address)) is not None:
            project = self._project_of(here[1])
            if project is None or not may_tell(project):
                raise InvalidRequest(f"there is no flow {here[1]} that you may send messages to", field="callback")
            return CallbackTarget(flow=here[1], channel=f"{here[2]}.{NOTIFY}", project=project)
        check_url(address, guard=self._poster.guard)
        return CallbackTarget(url=address, soap_headers=soap_headers)

    async def add(self, document: CaseDocument, to: CallbackTarget) -> None:
        """Subscribe an address to the end of a job; it is called at once if the job is over. The subscription is on
        disk when this returns."""
        digest = hashlib.sha256(msgspec.json.encode(to)).hexdigest()[:16]
        callback = CallbackDocument(id=f"{document.id}:callback-{digest}", job=document.id, to=to)
        if callback.id not in self._outbox.waiting:
            self._outbox.add(callback)
            self._by_job.setdefault(callback.job, []).append(callback)
        await self._ledger.settled()
        if not document.live:
            self._deliver_all(document.id)

    def ended(self, document: CaseDocument) -> None:
        """To be called in the same step as the end of a case."""
        self._deliver_all(document.id)

    # Sending

    def _deliver_all(self, job: CaseId) -> None:
        for callback in self._by_job.get(job, ()):
            self._outbox.deliver(callback.id, partial(self._deliver, callback))

    async def _deliver(self, callback: CallbackDocument) -> None:
        document = await self._find(callback.job)
        if document is not None:
            await self._tell(callback, document)
        self._outbox.remove(callback)
        self._by_job[callback.job].remove(callback)
        if not self._by_job[callback.job]:
            del self._by_job[callback.job]

    async def _tell(self, callback: CallbackDocument, document: CaseDocument) -> None:
        async def failed(tries: int) -> None:
            callback.tries = tries
            self._outbox.save(callback)

        async def attempt() -> str | None:
            return await self._attempt(callback, document)

        to = callback.to.url or callback.to.flow
        until = document.ended_at + PATIENCE_MS
        why = await self._sender.deliver(to, attempt, tries=callback.tries, until=until, failed=failed)
        if why:
            shown = callback.to.url.partition("?")[0] or f"{callback.to.channel} of {callback.to.flow}"
            self._notices.post(f"nobody at {shown} has taken the end of {document.id}: {why}", case=document.id)

    async def _attempt(self, callback: CallbackDocument, document: CaseDocument) -> str:
        """Empty if it was accepted, else why not."""
        to, element, who = callback.to, outcome_element(NOTIFY, document, own=callback.to.own), document.owner
        if to.administrator:
            if document.status != "completed":
                why = document.fault.message if document.fault is not None else document.status
                self._notices.post(
                    f"{document.id}, which nobody waits for, was {document.status}: {why}", case=document.id
                )
            return ""
        if to.url:
            id = header(OURS, MESSAGE_ID, f"urn:mendflow:{callback.id}/{document.started_at}")
            headers = {"Content-Type": "text/xml; charset=utf-8", "SOAPAction": f'"{NOTIFY_ACTION}"'}
            return await self._poster.post(to.url, write_envelope([element], [id, *to.soap_headers]), headers)
        sight = Sight(frozenset({to.project or document.project}))
        try:
            await self.router.post(to.flow, to.channel, as_message(element), id=callback.id, who=who, sight=sight)
        except StoreUnavailable:
            raise
        except NotFound as gone:
            self._notices.post(f"the end of {callback.job} cannot be told: {gone.message}", case=callback.job)
        except RequestError as error:
            return error.message
        return ""
