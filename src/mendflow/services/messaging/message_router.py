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

    async def post(self, flow: str, channel: str, message: dict[str, Value], *, id: str, who: str) -> PostReceipt:
        """Take a message for a flow; it is on disk when this returns. From one sender, the same id is the same message.
        Raises NotFound if the flow, or the channel, does not exist; WrongServer if its cases live on another server;
        Conflict if the id was used for another message; another RequestError if the flow does not accept the message;
        TemporarilyUnavailable if too many wait already."""
        await self._flows.look_again(flow)
        newest = self._flows.newest(flow)
        plan, name = self._plan(newest), message_key(flow, who, id)
        self._demand_channel(plan, Deliver(id=name, channel=channel, value=message))
        await self._claim_endpoint(flow)
        repeated = self._messages.knows(name)
        if repeated and not await self._messages.is_same(name, channel, message):
            raise Conflict(f"the message id {id[:100]!r} was used for another message; take another")
        if not repeated:
            mail = MessageDocument(
                id=name,
                flow=flow,
                channel=channel,
                message=message,
                number=0,
                received_at=self._clock.now(),
                who=who,
                one_way=channel not in plan.requests,
            )
            self._demand_room(mail, newest)
            with self._ledger.atomic():
                self._messages.add(mail)
                await self._route(mail, newest)
        await self._ledger.settled()
        return PostReceipt(id=name, repeated=repeated)

    def _demand_room(self, mail: MessageDocument, newest: FlowDocument) -> None:
        """Refuse a message that no case listens for where too many wait already. Messages that have waited for very
        long are dropped first."""
        waiting = self._messages.waiting(mail.flow, mail.channel)
        if len(waiting) < WAITING_MAX or mail.channel in self._plan(newest).begins:
            return
        if any(match_kind(live.case, mail.channel, mail.message) != "no" for live in self._candidates(mail)):
            return
        late = [each for each in waiting if each.received_at < self._clock.now() - WAITING_MS_MAX]
        message = f"nobody has listened on {mail.channel} for so long, and more messages came than are kept"
        for each in late:
            self._close(each, MessageReply(fault=Fault(name=REFUSED, category=Category.REFUSED, message=message)))
        if not late:
            words = f"messages on {mail.channel} wait for cases of flow {mail.flow} to listen; ask again"
            raise TemporarilyUnavailable(f"{WAITING_MAX} {words}")

    def _demand_channel(self, plan: Plan, message: Deliver) -> None:
        """Refuse a channel that the flow does not have; a channel of an earlier version is left to the cases of that
        version."""
        flow, channel = plan.flow.name, message.channel
        if channel in plan.channels:
            demand_message(plan, message)
        elif not self._listeners.has_listener(flow, channel):
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

    async def _route(self, mail: MessageDocument, newest: FlowDocument | None) -> None:
        """Give a message to the case that it is meant for, if there is one."""
        verdicts = {live.id: match_kind(live.case, mail.channel, mail.message) for live in self._candidates(mail)}
        correlated = next((case for case, verdict in verdicts.items() if verdict == "correlated"), None)
        plain = next((case for case, verdict in verdicts.items() if verdict == "plain"), None)
        if correlated is not None:
            await self._assign(mail, correlated)
        elif newest is not None and mail.channel in self._plan(newest).begins:
            await self._begin(mail, self._messages.begin_case(mail), newest)
        elif plain is not None:
            await self._assign(mail, plain)

    def _candidates(self, mail: MessageDocument) -> list[LiveCase]:
        """The live cases that may take it, the oldest first."""
        cases = self._listeners.cases_for_message(mail.flow, mail.channel, mail.message)
        found = [live for case in cases if (live := self._manager.live.get(case)) is not None and not live.case.over]
        return sorted(found, key=lambda live: (live.document.started_at, len(live.id), live.id))

    async def _assign(self, mail: MessageDocument, case: CaseId) -> None:
        self._listeners.drop_message(mail.id)
        self._messages.assign(mail, case)
        await self._deliver(mail)

    async def _begin(self, mail: MessageDocument, case: CaseId, newest: FlowDocument) -> None:
        document = CaseDocument(id=case, flow=newest.name, digest=newest.digest, owner=mail.who)
        try:
            await self._manager.begin(document, newest.flow, {})
        except RequestError as mistake:
            self._refuse(mail, mistake)
        else:
            await self._deliver(mail)

    async def _deliver(self, mail: MessageDocument) -> None:
        live = self._manager.live.get(mail.case)
        if live is None:
            return  # it ended as it began; then that is the answer
        try:
            await self._manager.command(live.id, Deliver(id=mail.id, channel=mail.channel, value=mail.message))
        except RequestError as mistake:
            self._refuse(mail, mistake)
        if mail.one_way and mail.id in self._messages.open and mail.id not in live.case.messages_waiting():
            self._close(mail, MessageReply(case=mail.case))

    def _refuse(self, mail: MessageDocument, mistake: RequestError) -> None:
        """The flow, or the version of it that a case has, does not accept such a message after all."""
        if isinstance(mistake, StoreUnavailable):
            raise mistake
        fault = Fault(name=REFUSED, category=Category.REFUSED, message=mistake.message)
        self._close(mail, MessageReply(fault=fault, case=mail.case))

    def case_listens(self, live: LiveCase, channel: str) -> None:
        """An activity of a case begins to listen."""
        flow = live.document.flow
        self._listeners.update(live, channel)
        if self._messages.waiting(flow, channel):
            self._background.start(self._offer(live, channel))

    async def _offer(self, live: LiveCase, channel: str) -> None:
        """Offer a case the waiting messages, in the order in which they came."""
        for mail in self._messages.waiting(live.document.flow, channel):
            if live.case.over or live.id not in self._manager.live:
                return
            wanted = not mail.case and self._listeners.may_take(live, channel, mail.id, mail.message)
            if wanted and match_kind(live.case, channel, mail.message) != "no":
                with self._ledger.atomic():
                    await self._assign(mail, live.id)

    # Replies

    def take_reply(self, live: LiveCase, order: SendReply) -> bool:
        """A case answers a message; whether the message came in here. Reported twice, it counts once."""
        mail = self._messages.open.get(order.message)
        if mail is None:
            return self._messages.knows(order.message)
        if not order.fault:
            self._close(mail, MessageReply(value=order.value, case=live.id))
            return True
        data: dict[str, Value] = {"type": {"message": order.message_type}, "value": order.value}
        words = f"the flow answers with {order.fault}"
        fault = Fault(name=order.fault, category=Category.FLOW, message=words, data=data)
        self._close(mail, MessageReply(fault=fault, case=live.id))
        return True

    def case_ended(self, document: CaseDocument) -> None:
        """A case is over: messages that it has not received go elsewhere, and requests that it has not answered get its
        end as an answer."""
        live = self._manager.live.get(document.id)
        unheard = frozenset(live.case.undelivered if live is not None else ())
        exited = live is not None and live.case.exited
        self._listeners.forget(document.id)
        for mail in self._messages.of_case(document.id):
            if mail.id in unheard and not mail.begins:  # otherwise it would start one case after the other
                self._messages.assign(mail, CaseId(""))
                self._background.start(self._reroute(mail))
            else:
                self._close(
                    mail, MessageReply(case=document.id) if mail.one_way else _end_reply(document, exited=exited)
                )

    async def _reroute(self, mail: MessageDocument) -> None:
        if not mail.case and mail.id in self._messages.open:
            with self._ledger.atomic():
                await self._route(mail, self._flows.deployed(mail.flow))

    def _close(self, mail: MessageDocument, answer: MessageReply) -> None:
        self._listeners.drop_message(mail.id)
        self._messages.close(mail, answer)
        for each in self._waiters.get(mail.id, ()):
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
        for mail in [each for each in self._messages.open.values() if root_of(each.id) in roots]:
            with self._ledger.atomic():
                await self._take_up(mail)

    async def _take_up(self, mail: MessageDocument) -> None:
        document = await self._manager.document(mail.case) if mail.case else None
        newest = self._flows.deployed(mail.flow)
        if not mail.case:
            await self._route(mail, newest)
        elif document is not None and not document.live:
            self.case_ended(document)
        elif document is not None:
            await self._deliver(mail)
        elif newest is not None:
            await self._begin(mail, mail.case, newest)

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
