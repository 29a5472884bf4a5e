"""This domain among others: whom it is connected with, what was heard of them, and what they may ask here."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final

from msgspec.structs import replace

from mendflow.core.model.domains import (
    ConnectionSpec,
    ConnectionState,
    DomainAnswer,
    DomainRequest,
    DomainsView,
    DomainView,
    InvitationAcceptance,
    InvitationAnswer,
)
from mendflow.core.model.errors import NotFound, StoreUnavailable
from mendflow.core.model.ids import CaseId
from mendflow.core.model.views import PilotView
from mendflow.services.base.background_tasks import BackgroundTasks
from mendflow.services.base.clock import Meter
from mendflow.services.base.contracts import Clock, MetaScheduler
from mendflow.services.base.hub import Hub
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.sealing import Sealer
from mendflow.services.cases.flows import Flows
from mendflow.services.data.catalogue.catalogue import Catalogue
from mendflow.services.domains.connections import Connection, Connections, ConnectionsChanged
from mendflow.services.domains.domain_lines import DomainLine, DomainLines, PeerLines, TellingLine
from mendflow.services.domains.own_domain import OwnDomain
from mendflow.services.domains.peer_contacts import Contacts
from mendflow.services.domains.reports import REPORT_MS, DomainLoad, DomainReporter
from mendflow.services.domains.request_bounds import demand_protocol
from mendflow.services.domains.router import DomainRouter
from mendflow.services.domains.work_contracts import WorkHost
from mendflow.services.domains.work_counts import NO_WORK, WorkCount, WorkCounter
from mendflow.services.scheduling.pilot_scheduler import PilotScheduler
from mendflow.stores.contract import Store

log = logging.getLogger("mendflow.domains")

DRAIN_CHECK_MS: Final = 1_000
CASES_SHOWN: Final = 20


class ConnectedDomains:
    """`contacts` is what was heard of the others; `url` is where this server is reached."""

    def __init__(
        self,
        *,
        store: Store,
        ledger: Ledger,
        clock: Clock,
        meter: Meter,
        sealer: Sealer,
        hub: Hub,
        lines: DomainLines,
        peer_lines: PeerLines,
        chance: Callable[[int], str],
        name: str,
        url: Callable[[], str],
        host: str,
        version: str,
        catalogue: Catalogue,
        flows: Flows,
        meta: PilotScheduler,
        queue: MetaScheduler,
        given: Mapping[str, MetaScheduler],
        pilots: Callable[[], Awaitable[Sequence[PilotView]]],
        load: Callable[[], Awaitable[DomainLoad]],
        way_of: Callable[[CaseId], tuple[str, ...]],
    ) -> None:
        own = OwnDomain(store, ledger, given=name, host=host)
        self.contacts = Contacts(clock, meter)
        self.connections = Connections(
            store=store,
            ledger=ledger,
            clock=clock,
            sealer=sealer,
            hub=hub,
            own=own,
            lines=lines,
            chance=chance,
        )
        self.reports = DomainReporter(
            connections=self.connections,
            contacts=self.contacts,
            catalogue=catalogue,
            flows=flows,
            meta=meta,
            meter=meter,
            version=version,
            pilots=pilots,
            load=load,
        )
        self.router = DomainRouter(
            queue=queue,
            given=given,
            others=peer_lines,
            way_of=way_of,
            store=store,
            ledger=ledger,
            clock=clock,
            connections=self.connections,
            contacts=self.contacts,
            flows=flows,
            reports=self.reports,
            hub=hub,
        )
        self._lines = lines
        self._peer_lines = peer_lines
        self._url = url
        self._open_lines: dict[str, tuple[Connection, DomainLine]] = {}
        self._clock = clock
        self._meter = meter
        self._hub = hub
        self._background = BackgroundTasks(ledger)
        self._watches_drains = False
        self._refreshes = False
        hub.subscribe(ConnectionsChanged, self._changed)

    async def read_shared(self) -> None:
        """Read the connections; other servers may have changed them."""
        await self.connections.start()

    async def stop(self) -> None:
        await self._background.stop()

    def _changed(self, _: ConnectionsChanged) -> None:
        known = self.connections.known()
        self.contacts.keep_only({each.name for each in known})
        ways = {each.name: _way(each) for each in known}
        self._open_lines = {
            name: (opened, line) for name, (opened, line) in self._open_lines.items() if ways.get(name) == _way(opened)
        }
        if known and not self._refreshes:
            self._refreshes = True
            self._background.start(self._refresh())
        if any(each.draining for each in known) and not self._watches_drains:
            self._watches_drains = True
            self._background.start(self._finish_drains())

    async def _refresh(self) -> None:
        """Put the own report together now and then, while somebody is connected."""
        try:
            while self.connections.known():
                try:
                    await self.reports.refresh()
                except StoreUnavailable as error:
                    log.warning("this domain's report could not be made: %s", error.message)
                await self._clock.sleep(REPORT_MS)
        finally:
            self._refreshes = False

    def lines(self) -> Mapping[str, DomainLine]:
        """The lines to the domains that work can be sent to, by name."""
        for each in self.connections.known():
            if (each.urls or each.told) and each.name not in self._open_lines:
                token = partial(self.connections.own_token, each)
                line = self._lines.line(each.urls, token, public_only=each.names_itself, told=each.told)
                self._open_lines[each.name] = (each, TellingLine(line, partial(self._own_urls, each)))
        return {**self._peer_lines(), **{name: line for name, (_, line) in self._open_lines.items()}}

    def _own_urls(self, connection: Connection) -> tuple[str, ...]:
        """Where the other side is to reach this server."""
        return connection.own_urls or tuple(filter(None, (self._url(),)))

    async def _finish_drains(self) -> None:
        """Remove connections that are drained, once nothing is left between the two. Each server looks; the first that
        sees it removes it."""
        try:
            while draining := [each for each in self.connections.known() if each.draining]:
                counts = await self.counts()
                for each in draining:
                    if counts.get(each.name, NO_WORK).none:
                        await self.connections.remove(each.name, mark=each.mark)
                await self._clock.sleep(DRAIN_CHECK_MS)
        finally:
            self._watches_drains = False

    # The side that does work for others

    @property
    def host(self) -> WorkHost | None:
        """Whoever does work for other domains."""
        return self._hub.provider(WorkHost)

    async def answer(self, connection: Connection, request: DomainRequest) -> DomainAnswer:
        """Answer an exchange that another domain has begun."""
        demand_protocol(request)
        self.contacts.record_contact(connection.name, request.report)
        await self.connections.hear_urls(connection, request.urls)
        await self.reports.current()
        if (host := self.host) is None:
            return DomainAnswer(stamp=self._meter(), report=self.reports.report_for(connection))
        report = self.reports.own_report(connection.name)
        if not connection.draining:
            return await host.exchange(connection.name, connection.rights, request, report)
        rights = replace(connection.rights, own_flows=False, flows=())
        answer = await host.exchange(connection.name, rights, request, report)
        sent = {each.key for each in request.sent}
        works = (
            replace(each, reason=f"{self.connections.own.name} is disconnecting, and takes no new work")
            if each.state == "refused" and each.key in sent
            else each
            for each in answer.works
        )
        return replace(answer, works=tuple(works))

    async def counts(self) -> Mapping[str, WorkCount]:
        """The work between this domain and each of the others."""
        counter = self._hub.provider(WorkCounter)
        return await counter.counts() if counter is not None else {}

    # What people see and do

    async def connect(self, name: str, spec: ConnectionSpec, *, who: str, url: str) -> DomainView:
        """Accept an invitation of another domain."""
        asked_ms, before = self._meter(), self.connections.find(name)
        connection = await self.connections.connect(name, spec, who=who, url=url)
        self.contacts.record_contact(name, latency_ms=self._meter() - asked_ms)
        view = await self._view(connection)
        if before is None:
            return view
        if before.urls == connection.urls:
            return replace(view, reason="it was so before, by this invitation, and nothing has changed")
        now, then = ", ".join(connection.urls), ", ".join(before.urls)
        return replace(view, reason=f"it was so before, and its address is {now} from now on, not {then}")

    async def change_urls(self, name: str, urls: Sequence[str]) -> DomainView:
        """An administrator says where a connected domain is."""
        return await self._view(await self.connections.change_urls(name, urls))

    async def accept(self, shown: str, acceptance: InvitationAcceptance) -> InvitationAnswer:
        """Another domain accepts our invitation."""
        answer = await self.connections.accept(shown, acceptance)
        self.contacts.record_contact(acceptance.domain)
        return answer

    async def disconnect(self, name: str, *, force: bool) -> DomainView:
        """Disconnect when nothing is under way any more, or at once: then what is under way there counts as lost when
        its lease has ended. An invitation is withdrawn."""
        if self.connections.find(name) is None and await self.connections.invitations.withdraw(name):
            return DomainView(name=name, url="", state="invited", reason="the invitation was withdrawn")
        connection = await self.connections.get(name)
        view = await self._view(connection)
        if force or (not view.sent and not view.held):
            await self.connections.remove(name)
            return view
        return await self._view(await self.connections.drain(name))

    async def overview(self) -> DomainsView:
        await self.connections.start()
        counts = await self.counts()
        views = [self._seen(each, counts) for each in self.connections.known()]
        known = {view.name for view in views}
        for each in await self.connections.invitations.all_open():
            if each.name not in known:
                url = each.urls[0] if each.urls else ""
                views.append(DomainView(name=each.name, url=url, state="invited", rights=each.rights))
        own = self.connections.own
        return DomainsView(name=own.name, charge=own.charge, domains=tuple(views))

    async def one(self, name: str) -> DomainView:
        for view in (await self.overview()).domains:
            if view.name == name:
                return view
        raise NotFound(f"no domain {name[:100]!r} is connected or invited; `mendflow domains` lists those that are")

    async def _view(self, connection: Connection) -> DomainView:
        return self._seen(connection, await self.counts())

    def _seen(self, connection: Connection, counts: Mapping[str, WorkCount]) -> DomainView:
        contact, count = self.contacts.of(connection.name), counts.get(connection.name, NO_WORK)
        state, reason = self._state(connection)
        return DomainView(
            name=connection.name,
            url=next(iter((*connection.urls, *connection.told)), ""),
            told=connection.told,
            state=state,
            connected_at=connection.connected_at,
            heard_at=contact.heard_at,
            latency_ms=contact.latency_ms,
            report=contact.report,
            rights=connection.rights,
            sent=count.sent,
            held=count.held,
            retrying=count.retrying,
            cases=count.cases[:CASES_SHOWN],
            reason=reason,
        )

    def _state(self, connection: Connection) -> tuple[ConnectionState, str]:
        contact = self.contacts.of(connection.name)
        if connection.draining:
            return "draining", "it is disconnected as soon as nothing is under way between the two"
        if contact.refused:
            return "refused", contact.refused
        if self.contacts.is_silent(connection.name):
            return "silent", contact.trouble or ("nothing was heard of it yet" if not contact.heard_at else "")
        return "connected", contact.trouble


def _way(connection: Connection) -> tuple[object, ...]:
    """What a line to it depends on."""
    return connection.mark, connection.urls, connection.told, connection.names_itself, connection.own_urls
