"""Routes messages for flows in BPEL: each to the one case that it is meant for, or it waits until there is one.

Of the live cases of a flow the oldest that waits for exactly this message gets it; else, where such messages start
cases, a new one does; else the oldest that waits for any such message; else it waits, and is tried again whenever a
case of the flow begins to listen. Choosing the case and delivering the message is one step, so a message is never given
to a case that has stopped listening."""

import asyncio
from collections.abc import Collection, Iterable
from typing import Final

from mendflow.core.engine.admission import demand_message
from mendflow.core.engine.messages import Deliver, SendReply
from mendflow.core.engine.plan import Plan, compile_flow
from mendflow.core.engine.xml.listeners import match_kind
from mendflow.core.model.errors import (
    Conflict,
    NotFound,
    RequestError,
    StoreUnavailable,
    TemporarilyUnavailable,
    WrongServer,
)
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.ids import CaseId
from mendflow.core.model.principals import DEFAULT_PROJECT, Sight
from mendflow.core.model.values import Value
from mendflow.services.base.background_tasks import BackgroundTasks
from mendflow.services.base.cluster import root_of
from mendflow.services.base.contracts import Clock
from mendflow.services.base.homes import HomeRegistry
from mendflow.services.base.ledger import Ledger
from mendflow.services.cases.flow_manager import FlowManager
from mendflow.services.cases.flows import FlowDocument, Flows
from mendflow.services.cases.live_case import CaseDocument, LiveCase
from mendflow.services.messaging.listeners import ListenerIndex
from mendflow.services.messaging.message_store import (
    MessageDocument,
    MessageReply,
    MessageStore,
    PostReceipt,
    endpoint_of,
    message_key,
)
from mendflow.stores.contract import Store

__all__ = ["MessageReply", "MessageRouter", "PostReceipt", "endpoint_of"]

ENDPOINT: Final = "endpoint"
"""The reason that keeps a tree here while none of its cases is live: messages come for it."""

TERMINATED: Final = "processTerminated"
MISSING: Final = "missingReply"
REFUSED: Final = "messageRefused"
WAITING_MAX: Final = 10_000
"""How many messages on one channel may wait for a listener."""

WAITING_MS_MAX: Final = 86_400_000
"""If that many wait, those that have waited for longer than a day are dropped."""


class MessageRouter:
    def __init__(
        self, *, store: Store, ledger: Ledger, clock: Clock, manager: FlowManager, flows: Flows, homes: HomeRegistry
    ) -> None:
        self._ledger = ledger
        self._clock = clock
        self._manager = manager
        self._flows = flows
        self._homes = homes
        self._messages = MessageStore(store, ledger, clock)
        self._background = BackgroundTasks(ledger)
        self._endpoint_locks: dict[CaseId, asyncio.Lock] = {}
        self._plans: dict[str, tuple[str, Plan]] = {}  # by flow: the digest of a version, and that version's plan
        self._listeners = ListenerIndex()
        self._waiters: dict[str, list[asyncio.Future[MessageReply]]] = {}

    async def stop(self) -> None:
        """Those who wait for an answer ask the next runtime for it."""
        await self._background.stop()
        for waiting in self._waiters.values():
            for each in waiting:
                if not each.done():
                    each.set_exception(StoreUnavailable("everything is being read again; ask for the answer once more"))

    # Incoming messages

    async def post(
        self, flow: str, channel: str, message: dict[str, Value], *, id: str, who: str, sight: Sight
    ) -> PostReceipt:
        """Take a message for a flow; it is on disk when this returns. From one sender, the same id is the same message.
        `sight` are the projects whose flows the sender may tell something. Raises NotFound if there is no such flow, or
        channel; WrongServer if its cases live on another server;
        Conflict if the id was used for another message; another RequestError if the flow does not accept the message;
        TemporarilyUnavailable if too many wait already."""
        await self._flows.refresh(flow)
        newest = self._flows.newest(flow, sight)
        plan, name = self._plan(newest), message_key(flow, who, id)
        self._demand_channel(newest.project, plan, Deliver(id=name, channel=channel, value=message))
        await self._claim_endpoint(flow)
        repeated = self._messages.knows(name)
        if repeated and not await self._messages.is_same(name, channel, message):
            raise Conflict(f"the message id {id[:100]!r} was used for another message; take another")
        if not repeated:
            document = MessageDocument(
                id=name,
                flow=flow,
                channel=channel,
                message=message,
                number=0,
                received_at=self._clock.now(),
                who=who,
                project=newest.project,
                one_way=channel not in plan.requests,
            )
            self._demand_room(document, newest)
            self._messages.add(document)
            await self._routed(document)
        await self._ledger.settled()
        return PostReceipt(id=name, repeated=repeated)

    async def _routed(self, message: MessageDocument) -> None:
        """Route a new message, also if its sender leaves meanwhile: one that was given to a case begins that case, or
        is delivered to it."""
        routing = self._background.start(self._reroute(message))
        await asyncio.wait([routing])
        if routing.cancelled():
            raise StoreUnavailable("everything is being read again; send the message once more")
        routing.result()

    def _demand_room(self, message: MessageDocument, newest: FlowDocument) -> None:
        """Refuse a message that no case listens for where too many wait already. Messages that have waited for very
        long are dropped first."""
        waiting = self._messages.waiting(message.flow, message.channel)
        if len(waiting) < WAITING_MAX or message.channel in self._plan(newest).begins:
            return
        if any(match_kind(live.case, message.channel, message.message) != "no" for live in self._candidates(message)):
            return
        late = [each for each in waiting if each.received_at < self._clock.now() - WAITING_MS_MAX]
        reason = f"nobody has listened on {message.channel} for so long, and more messages came than are kept"
        for each in late:
            self._close(each, MessageReply(fault=Fault(name=REFUSED, category=Category.REFUSED, message=reason)))
        if not late:
            words = f"messages on {message.channel} wait for cases of flow {message.flow} to listen; ask again"
            raise TemporarilyUnavailable(f"{WAITING_MAX} {words}")

    def _demand_channel(self, project: str, plan: Plan, message: Deliver) -> None:
        """Refuse a channel that the flow does not have; a channel of an earlier version is left to the cases of that
        version."""
        flow, channel = plan.flow.name, message.channel
        if channel in plan.channels:
            demand_message(plan, message)
        elif not self._listeners.has_listener(project, flow, channel):
            known = ", ".join(sorted(plan.channels)) or "none"
            raise NotFound(f"flow {flow} takes no messages on {channel}; it has {known}")

    async def answer(self, id: str) -> MessageReply:
        """The answer to a request, by the id of its receipt; waits for it as long as it takes. Raises StoreUnavailable
        if the services are rebuilt meanwhile: ask once more."""
        if id in self._messages.open:
            future: asyncio.Future[MessageReply] = asyncio.get_running_loop().create_future()
            waiting = self._waiters.setdefault(id, [])
            waiting.append(future)
            try:
                answer = await future
            finally:
                waiting.remove(future)
                if not waiting:
                    self._waiters.pop(id, None)
            await self._ledger.settled()
            return answer
        found = await self._messages.answer(id)
        if found is None:
            raise NotFound("nothing is known of this message, or not any more; send it again")
        return found

    # Routing

    async def _route(self, message: MessageDocument, newest: FlowDocument | None) -> None:
        """Give a message to the case that it is meant for, if there is one."""
        correlated, plain = None, None
        for live in self._candidates(message):
            verdict = match_kind(live.case, message.channel, message.message)
            if verdict == "correlated":
                correlated = live.id
                break
            plain = live.id if verdict == "plain" and plain is None else plain
        if correlated is not None:
            await self._assign(message, correlated)
        elif newest is not None and message.channel in self._plan(newest).begins:
            await self._begin(message, self._messages.begin_case(message), newest)
        elif plain is not None:
            await self._assign(message, plain)

    def _project(self, message: MessageDocument) -> str:
        return message.project or self._flows.project_of(message.flow) or DEFAULT_PROJECT

    def _candidates(self, message: MessageDocument) -> list[LiveCase]:
        """The live cases of the flow's project that may take it, the oldest first."""
        about = (self._project(message), message.flow, message.channel, message.message)
        cases = self._listeners.cases_for_message(*about)
        found = [live for case in cases if (live := self._manager.live.get(case)) is not None and not live.case.over]
        return sorted(found, key=lambda live: (live.document.started_at, len(live.id), live.id))

    async def _assign(self, message: MessageDocument, case: CaseId) -> None:
        self._listeners.drop_message(message.id)
        self._messages.assign(message, case)
        await self._deliver(message)

    async def _begin(self, message: MessageDocument, case: CaseId, newest: FlowDocument) -> None:
        document = CaseDocument(
            id=case, flow=newest.name, digest=newest.digest, owner=message.who, project=newest.project
        )
        try:
            await self._manager.begin(document, newest.flow, [])
        except RequestError as error:
            self._refuse(message, error)
        else:
            await self._deliver(message)

    async def _deliver(self, message: MessageDocument) -> None:
        live = self._manager.live.get(message.case)
        if live is None:
            return  # it ended as it began; then that is the answer
        try:
            await self._manager.command(live.id, Deliver(id=message.id, channel=message.channel, value=message.message))
        except RequestError as error:
            self._refuse(message, error)
        if message.one_way and message.id in self._messages.open and message.id not in live.case.messages_waiting():
            self._close(message, MessageReply(case=message.case))

    def _refuse(self, message: MessageDocument, error: RequestError) -> None:
        """The flow, or the version of it that a case has, does not accept such a message after all."""
        if isinstance(error, StoreUnavailable):
            raise error
        fault = Fault(name=REFUSED, category=Category.REFUSED, message=error.message)
        self._close(message, MessageReply(fault=fault, case=message.case))

    def case_listens(self, live: LiveCase, channel: str) -> None:
        """An activity of a case begins to listen."""
        flow = live.document.flow
        self._listeners.update(live, channel)
        if self._messages.waiting(flow, channel):
            self._background.start(self._offer(live, channel))

    async def _offer(self, live: LiveCase, channel: str) -> None:
        """Offer a case the waiting messages, in the order in which they came."""
        for message in self._messages.waiting(live.document.flow, channel):
            if live.case.over or live.id not in self._manager.live:
                return
            own = self._project(message) == live.document.project
            wanted = own and not message.case and self._listeners.may_take(live, channel, message.id, message.message)
            if wanted and match_kind(live.case, channel, message.message) != "no":
                with self._ledger.atomic():
                    await self._assign(message, live.id)

    # Replies

    def take_reply(self, live: LiveCase, order: SendReply) -> bool:
        """A case answers a message; whether the message came in here. Reported twice, it counts once."""
        message = self._messages.open.get(order.message)
        if message is None:
            return self._messages.knows(order.message)
        if not order.fault:
            self._close(message, MessageReply(value=order.value, case=live.id))
            return True
        data: dict[str, Value] = {"type": {"message": order.message_type}, "value": order.value}
        words = f"the flow answers with {order.fault}"
        fault = Fault(name=order.fault, category=Category.FLOW, message=words, data=data)
        self._close(message, MessageReply(fault=fault, case=live.id))
        return True

    def case_ended(self, document: CaseDocument) -> None:
        """A case is over: messages that it has not received go elsewhere, and requests that it has not answered get its
        end as an answer."""
        live = self._manager.live.get(document.id)
        unheard = frozenset(live.case.undelivered if live is not None else ())
        exited = live is not None and live.case.exited
        self._listeners.forget(document.id)
        for message in self._messages.of_case(document.id):
            if message.id in unheard and not message.begins:  # otherwise it would start one case after the other
                self._messages.assign(message, CaseId(""))
                self._background.start(self._reroute(message))
            else:
                self._close(
                    message, MessageReply(case=document.id) if message.one_way else _end_reply(document, exited=exited)
                )

    async def _reroute(self, message: MessageDocument) -> None:
        if not message.case and message.id in self._messages.open:
            with self._ledger.atomic():
                await self._route(message, self._flows.deployed(message.flow))

    def _close(self, message: MessageDocument, answer: MessageReply) -> None:
        self._listeners.drop_message(message.id)
        self._messages.close(message, answer)
        for each in self._waiters.get(message.id, ()):
            if not each.done():
                each.set_result(answer)

    # Endpoints

    async def _claim_endpoint(self, flow: str) -> None:
        """Make this server the home of the flow's messages."""
        root = endpoint_of(flow)
        async with self._endpoint_locks.setdefault(root, asyncio.Lock()):
            await self._homes.wait_until_loaded(root)
            if root in self._messages.endpoints:
                return
            if self._homes.knows(root):
                self._homes.hold(root, ENDPOINT)
            elif not await self._homes.claim(root, ENDPOINT):
                raise WrongServer(f"another server takes the messages of flow {flow}; ask again")
            await self._messages.open_endpoint(root, flow)

    async def load(self, roots: Collection[CaseId]) -> None:
        """Before the cases of these trees continue: load their messages."""
        for root in roots:
            if await self._messages.load(root):
                self._homes.hold(root, ENDPOINT)

    async def resume(self, roots: Collection[CaseId], cases: Iterable[LiveCase]) -> None:
        """After these trees were loaded: complete what a crash interrupted."""
        for live in cases:
            for channel in live.case.listeners if live.flow.xml is not None else ():
                self._listeners.update(live, channel)
        for message in [each for each in self._messages.open.values() if root_of(each.id) in roots]:
            with self._ledger.atomic():
                await self._take_up(message)

    async def _take_up(self, message: MessageDocument) -> None:
        document = await self._manager.document(message.case) if message.case else None
        newest = self._flows.deployed(message.flow)
        if not message.case:
            await self._route(message, newest)
        elif document is not None and not document.live:
            self.case_ended(document)
        elif document is not None:
            await self._deliver(message)
        elif newest is not None:
            await self._begin(message, message.case, newest)

    def _plan(self, newest: FlowDocument) -> Plan:
        known = self._plans.get(newest.name)
        if known is None or known[0] != newest.digest:
            known = self._plans[newest.name] = (newest.digest, compile_flow(newest.flow, taken=True))
        return known[1]


def _end_reply(document: CaseDocument, *, exited: bool) -> MessageReply:
    """The answer to a request whose case ended without a reply."""
    if document.status == "failed" and document.fault is not None:
        return MessageReply(fault=document.fault, case=document.id)
    return MessageReply(
        end_fault=MISSING if document.status == "completed" and not exited else TERMINATED, case=document.id
    )
