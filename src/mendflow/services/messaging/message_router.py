"""Messages from outside for flows in BPEL, each taken to the one case that it is meant for, or kept until there is one.

Of the live cases of a flow the oldest that waits for exactly this message gets it; else, where such messages begin
cases, a new one does; else the oldest that waits for any such message; else it waits, and is tried again whenever a
case of the flow begins to listen. Between the choice of a case and the case's hearing of it nothing else happens, so a
message is never given to somebody who has stopped listening."""

import asyncio
from collections.abc import Collection, Iterable
from typing import Final

from mendflow.core.engine.entry import demand_message
from mendflow.core.engine.messages import Deliver, SendReply
from mendflow.core.engine.plan import Plan, compile_flow
from mendflow.core.engine.xml.hearing import fits
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.ids import CaseId
from mendflow.core.model.problems import Conflict, Elsewhere, Mistake, NotFound, NotNow, StoreUnavailable
from mendflow.core.model.values import Value
from mendflow.services.base.background_tasks import Soon
from mendflow.services.base.cluster import root_of
from mendflow.services.base.contracts import Clock
from mendflow.services.base.homes import HomeBook
from mendflow.services.base.ledger import Ledger
from mendflow.services.cases.flow_manager import FlowManager
from mendflow.services.cases.flows import FlowDocument, Flows
from mendflow.services.cases.live_case import CaseDocument, LiveCase
from mendflow.services.messaging.listeners import Listening
from mendflow.services.messaging.message_store import Answer, MailBook, MailDocument, Posted, endpoint_of, mail_id
from mendflow.stores.contract import Store

__all__ = ["Answer", "Mailroom", "Posted", "endpoint_of"]

ENDPOINT: Final = "endpoint"
"""Why a tree stays here while no case of it is live: messages come for it."""

TERMINATED: Final = "processTerminated"
MISSING: Final = "missingReply"
REFUSED: Final = "messageRefused"
WAITING_MAX: Final = 10_000
"""So many messages on one channel may wait for somebody to listen."""

WAITING_MS_MAX: Final = 86_400_000
"""Where that many wait, those that have done so for longer than a day give way."""


class Mailroom:
    def __init__(
        self, *, store: Store, ledger: Ledger, clock: Clock, manager: FlowManager, flows: Flows, homes: HomeBook
    ) -> None:
        self._ledger = ledger
        self._clock = clock
        self._manager = manager
        self._flows = flows
        self._homes = homes
        self._book = MailBook(store, ledger, clock)
        self._soon = Soon(ledger)
        self._opening: dict[CaseId, asyncio.Lock] = {}
        self._plans: dict[str, tuple[str, Plan]] = {}  # by flow: the digest of a version, and that version's plan
        self._listening = Listening()
        self._asked: dict[str, list[asyncio.Future[Answer]]] = {}

    async def stop(self) -> None:
        """Whoever waits for an answer asks the next generation for it."""
        await self._soon.stop()
        for waiting in self._asked.values():
            for each in waiting:
                if not each.done():
                    each.set_exception(StoreUnavailable("everything is being read again; ask for the answer once more"))

    # What comes in

    async def post(self, flow: str, channel: str, message: dict[str, Value], *, id: str, who: str) -> Posted:
        """Take a message for a flow; it is on disk when this returns. Of one who sends, the same id is the same
        message. Raises NotFound if the flow, or the channel, is not there; Elsewhere if its cases live on another
        server; Conflict if the id was another message's; another Mistake if the message is none that the flow takes;
        NotNow if too many wait already."""
        await self._flows.look_again(flow)
        newest = self._flows.newest(flow)
        plan, name = self._plan(newest), mail_id(flow, who, id)
        self._demand_heard(plan, Deliver(id=name, channel=channel, value=message))
        await self._open_endpoint(flow)
        repeated = self._book.knows(name)
        if repeated and not await self._book.same(name, channel, message):
            raise Conflict(f"the message id {id[:100]!r} was used for another message; take another")
        if not repeated:
            mail = MailDocument(
                id=name,
                flow=flow,
                channel=channel,
                message=message,
                number=0,
                came_at=self._clock.now(),
                who=who,
                one_way=channel not in plan.requests,
            )
            self._demand_room(mail, newest)
            with self._ledger.whole():
                self._book.came(mail)
                await self._route(mail, newest)
        await self._ledger.settled()
        return Posted(id=name, repeated=repeated)

    def _demand_room(self, mail: MailDocument, newest: FlowDocument) -> None:
        """Refuse a message that nobody wants yet where too many wait already. Those that have waited for very long give
        way then."""
        waiting = self._book.waiting(mail.flow, mail.channel)
        if len(waiting) < WAITING_MAX or mail.channel in self._plan(newest).begins:
            return
        if any(fits(live.case, mail.channel, mail.message) != "no" for live in self._candidates(mail)):
            return
        late = [each for each in waiting if each.came_at < self._clock.now() - WAITING_MS_MAX]
        message = f"nobody has listened on {mail.channel} for so long, and more messages came than are kept"
        for each in late:
            self._over(each, Answer(fault=Fault(name=REFUSED, category=Category.REFUSED, message=message)))
        if not late:
            words = f"messages on {mail.channel} wait for cases of flow {mail.flow} to listen; ask again"
            raise NotNow(f"{WAITING_MAX} {words}")

    def _demand_heard(self, plan: Plan, message: Deliver) -> None:
        """Refuse what the flow does not take; what only cases of an earlier version hear is for them to judge."""
        flow, channel = plan.flow.name, message.channel
        if channel in plan.channels:
            demand_message(plan, message)
        elif not self._listening.somebody(flow, channel):
            known = ", ".join(sorted(plan.channels)) or "none"
            raise NotFound(f"flow {flow} takes no messages on {channel}; it has {known}")

    async def answer(self, id: str) -> Answer:
        """What answers a request, by the id of what was posted; waits for it as long as it takes. Raises
        StoreUnavailable if everything is read again meanwhile: ask once more."""
        if id in self._book.open:
            future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
            waiting = self._asked.setdefault(id, [])
            waiting.append(future)
            try:
                answer = await future
            finally:
                waiting.remove(future)
                if not waiting:
                    self._asked.pop(id, None)
            await self._ledger.settled()
            return answer
        found = await self._book.answer(id)
        if found is None:
            raise NotFound("nothing is known of this message, or not any more; send it again")
        return found

    # Routing

    async def _route(self, mail: MailDocument, newest: FlowDocument | None) -> None:
        """Give a message to the case that it is meant for, if there is one."""
        verdicts = {live.id: fits(live.case, mail.channel, mail.message) for live in self._candidates(mail)}
        correlated = next((case for case, verdict in verdicts.items() if verdict == "correlated"), None)
        plain = next((case for case, verdict in verdicts.items() if verdict == "plain"), None)
        if correlated is not None:
            await self._give(mail, correlated)
        elif newest is not None and mail.channel in self._plan(newest).begins:
            await self._begin(mail, self._book.begins(mail), newest)
        elif plain is not None:
            await self._give(mail, plain)

    def _candidates(self, mail: MailDocument) -> list[LiveCase]:
        """The live cases that may take it, the oldest first."""
        cases = self._listening.for_message(mail.flow, mail.channel, mail.message)
        found = [live for case in cases if (live := self._manager.live.get(case)) is not None and not live.case.over]
        return sorted(found, key=lambda live: (live.document.started_at, len(live.id), live.id))

    async def _give(self, mail: MailDocument, case: CaseId) -> None:
        self._listening.taken(mail.id)
        self._book.given(mail, case)
        await self._deliver(mail)

    async def _begin(self, mail: MailDocument, case: CaseId, newest: FlowDocument) -> None:
        document = CaseDocument(id=case, flow=newest.name, digest=newest.digest, owner=mail.who)
        try:
            await self._manager.begin(document, newest.flow, {})
        except Mistake as mistake:
            self._refused(mail, mistake)
        else:
            await self._deliver(mail)

    async def _deliver(self, mail: MailDocument) -> None:
        live = self._manager.live.get(mail.case)
        if live is None:
            return  # it ended as it began; then that is the answer
        try:
            await self._manager.command(live.id, Deliver(id=mail.id, channel=mail.channel, value=mail.message))
        except Mistake as mistake:
            self._refused(mail, mistake)
        if mail.one_way and mail.id in self._book.open and mail.id not in live.case.messages_waiting():
            self._over(mail, Answer(case=mail.case))

    def _refused(self, mail: MailDocument, mistake: Mistake) -> None:
        """The flow, or the version of it that a case has, does not take such a message after all."""
        if isinstance(mistake, StoreUnavailable):
            raise mistake
        fault = Fault(name=REFUSED, category=Category.REFUSED, message=mistake.message)
        self._over(mail, Answer(fault=fault, case=mail.case))

    def listens(self, live: LiveCase, channel: str) -> None:
        """Somebody in a case begins to listen."""
        flow = live.document.flow
        self._listening.note(live, channel)
        if self._book.waiting(flow, channel):
            self._soon.do(self._offer(live, channel))

    async def _offer(self, live: LiveCase, channel: str) -> None:
        """Let a case take what waits for somebody like it, in the order in which it came."""
        for mail in self._book.waiting(live.document.flow, channel):
            if live.case.over or live.id not in self._manager.live:
                return
            wanted = not mail.case and self._listening.wants(live, channel, mail.id, mail.message)
            if wanted and fits(live.case, channel, mail.message) != "no":
                with self._ledger.whole():
                    await self._give(mail, live.id)

    # What goes out

    def replied(self, live: LiveCase, order: SendReply) -> bool:
        """A case answers a message; whether that came in here. Told twice, it counts once."""
        mail = self._book.open.get(order.message)
        if mail is None:
            return self._book.knows(order.message)
        if not order.fault:
            self._over(mail, Answer(value=order.value, case=live.id))
            return True
        data: dict[str, Value] = {"type": {"message": order.message_type}, "value": order.value}
        words = f"the flow answers with {order.fault}"
        fault = Fault(name=order.fault, category=Category.FLOW, message=words, data=data)
        self._over(mail, Answer(fault=fault, case=live.id))
        return True

    def case_ended(self, document: CaseDocument) -> None:
        """A case is over: messages that nobody in it has heard go elsewhere, and those that it has not answered have
        its end for an answer."""
        live = self._manager.live.get(document.id)
        unheard = frozenset(live.case.unheard if live is not None else ())
        exited = live is not None and live.case.exited
        self._listening.forget(document.id)
        for mail in self._book.of_case(document.id):
            if mail.id in unheard and not mail.begins:  # else it would begin one case after the other
                self._book.given(mail, CaseId(""))
                self._soon.do(self._route_again(mail))
            else:
                self._over(mail, Answer(case=document.id) if mail.one_way else _end(document, exited=exited))

    async def _route_again(self, mail: MailDocument) -> None:
        if not mail.case and mail.id in self._book.open:
            with self._ledger.whole():
                await self._route(mail, self._flows.deployed(mail.flow))

    def _over(self, mail: MailDocument, answer: Answer) -> None:
        self._listening.taken(mail.id)
        self._book.over(mail, answer)
        for each in self._asked.get(mail.id, ()):
            if not each.done():
                each.set_result(answer)

    # Endpoints

    async def _open_endpoint(self, flow: str) -> None:
        """See to it that the flow's messages are at home here."""
        root = endpoint_of(flow)
        async with self._opening.setdefault(root, asyncio.Lock()):
            await self._homes.arrived(root)
            if root in self._book.endpoints:
                return
            if self._homes.knows(root):
                self._homes.hold(root, ENDPOINT)
            elif not await self._homes.claim(root, ENDPOINT):
                raise Elsewhere(f"another server takes the messages of flow {flow}; ask again")
            await self._book.open_endpoint(root, flow)

    async def load(self, roots: Collection[CaseId]) -> None:
        """Before the cases of these trees go on: read what came for them."""
        for root in roots:
            if await self._book.load(root):
                self._homes.hold(root, ENDPOINT)

    async def resume(self, roots: Collection[CaseId], cases: Iterable[LiveCase]) -> None:
        """After these trees were taken up: do what a crash came in between of."""
        for live in cases:
            for channel in live.case.listeners if live.flow.xml is not None else ():
                self._listening.note(live, channel)
        for mail in [each for each in self._book.open.values() if root_of(each.id) in roots]:
            with self._ledger.whole():
                await self._take_up(mail)

    async def _take_up(self, mail: MailDocument) -> None:
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


def _end(document: CaseDocument, *, exited: bool) -> Answer:
    """What answers a request whose case ended without a reply."""
    if document.status == "failed" and document.fault is not None:
        return Answer(fault=document.fault, case=document.id)
    return Answer(ended=MISSING if document.status == "completed" and not exited else TERMINATED, case=document.id)
