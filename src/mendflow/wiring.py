"""The only module that chooses concrete classes.

A data folder holds what belongs to one server: `server.json`, by which commands on this machine find the running
server; and, unless its store is elsewhere, the store and the stored files."""

import hashlib
import importlib
import os
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from mendflow.address_guard import allowed_address
from mendflow.batch.router import BatchSystemRouter
from mendflow.batch.site_folders import SiteFolders
from mendflow.client import server_file
from mendflow.core.model.data import StorageElement
from mendflow.core.model.errors import InvalidRequest, StoreUnavailable
from mendflow.core.model.flow import Flow
from mendflow.event_loop import relax_garbage_collection, run
from mendflow.formats.shipped import default_patterns, default_rules
from mendflow.lazy import LazyModule
from mendflow.log_lines import log_to_terminal
from mendflow.server.domain_lines import HttpDomainLines
from mendflow.server.soap.caller import HttpCaller
from mendflow.server.source_reads import ServerSourceReader
from mendflow.server.webhook_posts import HttpPoster
from mendflow.server_options import (
    ServerAnnouncement,
    ServerOptions,
    find_server,
    outgoing_guard,
    own_pin,
    write_server_file,
)
from mendflow.services.api.domain import Domain
from mendflow.services.base.clock import SystemClock, steady_ms, steady_name, wall_ms
from mendflow.services.base.cluster import NO_PEERS, ServerDocument
from mendflow.services.base.contracts import FileStore, MetaScheduler
from mendflow.services.base.counters import ServerMetrics
from mendflow.services.cluster.shared_secret import derived, shared_secret
from mendflow.services.data.watches.storage import ListedFile, StorageUnavailable
from mendflow.services.observe.metered_store import MeteredStore
from mendflow.services.observe.monitor_settings import MonitorSettings
from mendflow.services.observe.tracing.tracer import SpanSink, Tracer
from mendflow.services.recovery.levels import DEFAULT_WAITS_MS
from mendflow.services.runtime.server import NO_DOMAINS, Server, ServerSettings
from mendflow.stores.contract import Store
from mendflow.stores.file_lock import FileLock
from mendflow.stores.files import FolderFileStore
from mendflow.stores.secret_files import SECRETS_KEY_FILE, SecretFiles
from mendflow.stores.shared_files import SharedFileStore
from mendflow.stores.urls import STORE_FILE, StoreLocation, has_password, store_at
from mendflow.tls import NO_TLS_SETTINGS, ClientTls, ServerCertificate
from mendflow.transfer.errors import BadFileUrl, TransferFailed
from mendflow.version import VERSION

if TYPE_CHECKING:
    from mendflow.core import xml
    from mendflow.formats import flow_texts, jsdl
    from mendflow.formats.bpel import ports
    from mendflow.formats.rules import xrs_texts
    from mendflow.server import access_setup, mail, pilot_api
    from mendflow.server import app as http_api
    from mendflow.server import peer_requests as http_peer_requests
    from mendflow.server import peers as http_peers
    from mendflow.server import runner as http_runner
    from mendflow.server.access import AccessControl
    from mendflow.server.access_setup import ServerAccess
    from mendflow.services.api import case_locator, domain_gate, peer_handler, soap_endpoint
    from mendflow.services.audit import audit_service
    from mendflow.stores.postgresql import read_only
    from mendflow.transfer import listing
else:
    xml = LazyModule("mendflow.core.xml")
    flow_texts = LazyModule("mendflow.formats.flow_texts")
    jsdl = LazyModule("mendflow.formats.jsdl")
    ports = LazyModule("mendflow.formats.bpel.ports")
    xrs_texts = LazyModule("mendflow.formats.rules.xrs_texts")
    access_setup = LazyModule("mendflow.server.access_setup")
    http_api = LazyModule("mendflow.server.app")
    mail = LazyModule("mendflow.server.mail")
    http_peer_requests = LazyModule("mendflow.server.peer_requests")
    http_peers = LazyModule("mendflow.server.peers")
    pilot_api = LazyModule("mendflow.server.pilot_api")
    http_runner = LazyModule("mendflow.server.runner")
    case_locator = LazyModule("mendflow.services.api.case_locator")
    domain_gate = LazyModule("mendflow.services.api.domain_gate")
    peer_handler = LazyModule("mendflow.services.api.peer_handler")
    audit_service = LazyModule("mendflow.services.audit.audit_service")
    soap_endpoint = LazyModule("mendflow.services.api.soap_endpoint")
    read_only = LazyModule("mendflow.stores.postgresql.read_only")
    listing = LazyModule("mendflow.transfer.listing")

__all__ = [
    "DEFAULT_WAITS_MS",
    "MonitorSettings",
    "RunningServer",
    "ServerAnnouncement",
    "ServerOptions",
    "allowed_address",
    "find_server",
    "has_password",
    "run",
    "running_server",
    "write_server_file",
]


class RunningServer:
    """`pilot_token` is for local pilots; empty if no token is needed; `pilot_tls` is how they know this server. `place`
    describes what it serves, for people. `url` is empty, and `access` None, if it does not listen."""

    def __init__(
        self,
        url: str,
        place: str,
        access: "ServerAccess | None",
        domain: Domain,
        server: Server,
        pilot_tls: ClientTls = NO_TLS_SETTINGS,
        reload_certificate: Callable[[], None] = lambda: None,
    ) -> None:
        self.pilot_tls = pilot_tls
        self.reload_certificate = reload_certificate
        self.shared = server.membership.shared
        self.url = url
        self.place = place
        self.pilot_token = access.pilot_token if access is not None else ""
        self.access: AccessControl | None = access.control if access is not None else None
        self.domain = domain
        self.server = server


def read_job(description: str, folder: Path | None, elements_max: int | None = None) -> Flow:
    """The flow of a description that a port received. Raises LongWork if that has more than `elements_max` elements."""
    root = xml.parse(description, jsdl.RECEIVED)
    return jsdl.flow_of(root, jsdl.RECEIVED, folder, elements_max=elements_max)


@asynccontextmanager
async def running_server(
    options: ServerOptions, *, domains: Mapping[str, MetaScheduler] = NO_DOMAINS
) -> AsyncIterator[RunningServer]:
    """A whole server in this process, for as long as the block lasts. `domains` are other domains that failed jobs can
    be submitted to, by name."""
    log_to_terminal()
    with _lock_folder(options.data, store_at(options.store, options.data)) as (located, file_store):
        place = located.shown if options.store else str(options.data)
        counts, peers = ServerMetrics(), PeerIdentity(options.data, options.client_tls) if located.shared else None
        async with _span_export(options, counts, peers) as offer:
            grounds = SiteFolders(options.data.absolute())
            server = _build_server(options, located, file_store, domains, peers, counts, offer, grounds)
            async with _serve(options, place, server, file_store, peers, grounds) as running:
                yield running


@contextmanager
def _lock_folder(
    data: Path, located: StoreLocation
) -> Iterator[tuple[StoreLocation, FolderFileStore | SharedFileStore]]:
    """Locks the data folder while the block lasts. The lock of a store in the folder guards the folder too."""
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreUnavailable(f"the data folder {data} cannot be created: {error.strerror}") from error
    files = FolderFileStore(data / "files")
    with ExitStack() as stack:
        if located.file != data / STORE_FILE:
            lock = FileLock(data / "server", "folder")
            lock.acquire()
            stack.callback(lock.release)
        yield located, SharedFileStore(located.store, files) if located.shared else files


class PeerIdentity:
    """What a server on a shared store needs: its identity, and the way to the other servers. It is identified by its
    machine and its folder, so that it is the same after a restart."""

    def __init__(self, data: Path, tls: ClientTls) -> None:
        host = socket.gethostname()
        folder = hashlib.sha256(str(data.absolute()).encode()).hexdigest()[:6]
        self.document = ServerDocument(id=f"{host}-{folder}", url="", host=host, meter=steady_name())
        self.peers = http_peers.HttpPeers(tls)
        self.token = ""
        self.pilot_token = ""

    async def introduce(self, store: Store) -> None:
        secret = await shared_secret(store)
        self.token, self.pilot_token = derived(secret, "server"), derived(secret, "local pilot")
        self.peers.introduce(self.token)

    def serve_at(self, url: str) -> None:
        """Announced with the next heartbeat."""
        self.document.url = url


@asynccontextmanager
async def _span_export(
    options: ServerOptions, counts: ServerMetrics, peers: PeerIdentity | None
) -> AsyncIterator[SpanSink | None]:
    """The exporter of spans, if one is wanted. It is imported only then, because its dependencies are optional."""
    if not options.otlp:
        yield None
        return
    try:
        otlp = importlib.import_module("mendflow.server.otlp")
    except ImportError as error:
        raise InvalidRequest(
            f"traces need a package that is not installed ({error}): pip install 'mendflow[traces]'"
        ) from error
    attributes = {
        "service.name": os.environ.get("OTEL_SERVICE_NAME", "mendflow"),
        "service.version": VERSION,
        "service.instance.id": peers.document.id if peers is not None else socket.gethostname(),
    }
    exporter = otlp.OtlpExporter(options.otlp, attributes=attributes, counts=counts.spans)
    exporter.start()
    try:
        yield exporter.offer
    finally:
        await exporter.stop()


class WatchedElements:
    """Reads the storage elements that a server watches."""

    async def list(self, element: StorageElement, prefix: str) -> Sequence[ListedFile]:
        with _translate_errors(StorageUnavailable):
            return [
                ListedFile(each.path, each.bytes, each.identity) for each in await listing.list_files(element, prefix)
            ]

    async def read(self, element: StorageElement, path: str) -> tuple[ListedFile, str]:
        with _translate_errors(StorageUnavailable):
            found, digest = await listing.digest_file(element, path)
        return ListedFile(found.path, found.bytes, found.identity), digest


@contextmanager
def _translate_errors(problem: type[Exception]) -> Iterator[None]:
    """Translate errors of a transfer into those of the storage contract."""
    try:
        yield
    except (TransferFailed, BadFileUrl) as error:
        raise problem(str(error)) from error


def _build_server(
    options: ServerOptions,
    located: StoreLocation,
    file_store: FileStore,
    domains: Mapping[str, MetaScheduler],
    peers: PeerIdentity | None,
    counts: ServerMetrics,
    offer: SpanSink | None,
    grounds: SiteFolders,
) -> Server:
    clock, guard = SystemClock(), outgoing_guard(options, lambda: server.is_alone())
    server = Server(
        store=MeteredStore(located.store, counts.store),
        counts=counts,
        tracer=Tracer(offer, clock) if offer is not None else None,
        file_store=file_store,
        server=peers.document if peers is not None else None,
        peers=peers.peers if peers is not None else NO_PEERS,
        meter=steady_ms,
        meter_name=steady_name(),
        clock=clock,
        wall=wall_ms,
        settings=ServerSettings(
            lease_ms=options.lease_ms,
            domain_lease_ms=options.domain_lease_ms,
            losses_max=options.losses_max,
            cases_per_start_max=options.cases_per_start,
            live_inputs_bytes=options.live_inputs_bytes,
            files_roots=options.files_roots,
            owner_only=options.mostly_pilots,
            long_steps_aside=not options.mostly_pilots,
            recovery=options.recovery,
            learning=options.learning,
            levels_ms=options.levels_ms,
            holds_unhandled=options.holds_unhandled,
            monitor=options.monitor,
            sites_look_ms=options.sites_look_ms,
            data_wait_ms=options.data_wait_ms,
            continues_found=options.continues_found,
            schedules=options.schedules,
            reports=options.data / server_file.REPORTS,
            domain=options.domain,
            host=socket.gethostname(),
            teller=options.teller,
        ),
        version=VERSION,
        shipped=default_rules(),
        patterns=default_patterns(),
        domains=domains,
        lines=HttpDomainLines(
            loopback=lambda: options.is_own and server.is_alone(),
            tls=options.client_tls,
            allowed=options.allowed_addresses,
        ),
        poster=HttpPoster(guard, mail=mail.mail_sender(options.mail) if options.mail.smtp else None),
        source_reader=ServerSourceReader(guard, allowed=options.sources, postgresql=read_only),
        caller=HttpCaller(guard),
        read_job=read_job,
        read_table=lambda *table: flow_texts.read_table(*table),
        elements=WatchedElements(),
        batch_systems=BatchSystemRouter(grounds),
        secret_sources=SecretFiles(options.secrets_key or options.data / SECRETS_KEY_FILE, options.secrets_from),
    )
    return server


@asynccontextmanager
async def _serve(
    options: ServerOptions,
    place: str,
    server: Server,
    file_store: FolderFileStore | SharedFileStore,
    peers: PeerIdentity | None,
    grounds: SiteFolders,
) -> AsyncIterator[RunningServer]:
    elsewhere = peers.peers if peers is not None else None
    domain = Domain(server, elsewhere=elsewhere, rule_files=xrs_texts, flow_texts=flow_texts)
    address = None
    try:
        if options.listen or peers is not None:
            address = http_runner.ListeningAddress(options.host, options.port, tls=options.tls is not None)
            server.listens_at(options.url or address.public_url)  # what a case sends may say where to answer
        await server.open()
        file_store.open()
        relax_garbage_collection()
        if address is not None:
            if peers is not None:
                await peers.introduce(server.store)
            own = (peers.token, peers.pilot_token) if peers is not None else ()
            shared = access_setup.SharedTokens(*own)
            guard = outgoing_guard(options, server.is_alone)
            takes_stored = peers is not None or not options.mostly_pilots
            async with (
                access_setup.server_access(
                    server, options.tokens, options.oidc, shared=shared, guard=guard, takes_stored=takes_stored
                ) as access,
                _serve_http(options, place, address, server, domain, peers, grounds, access) as running,
            ):
                yield running
        else:
            yield RunningServer("", place, None, domain, server)
    finally:
        if address is not None:
            address.close()
        await server.close()
        for each in (server.poster, server.caller, server.lines):
            if isinstance(each, HttpPoster | HttpCaller | HttpDomainLines):
                await each.close()
        if peers is not None:
            await peers.peers.close()


@asynccontextmanager
async def _serve_http(
    options: ServerOptions,
    place: str,
    address: "http_runner.ListeningAddress",
    server: Server,
    domain: Domain,
    peers: PeerIdentity | None,
    grounds: SiteFolders,
    access: "ServerAccess",
) -> AsyncIterator[RunningServer]:
    peer = peer_handler.PeerHandler(server) if peers is not None else None
    homes = case_locator.CaseLocator(server) if peers is not None else None
    peer_requests = (
        http_peer_requests.PeerRequests(homes.find, peers.token, options.client_tls)
        if homes is not None and peers is not None
        else None
    )
    audit = _audit_service(options, server)

    def load_api() -> "http_api.Api":
        return http_api.create_app(
            domain,
            access=access.control,
            audit=audit.log if audit is not None else None,
            let_go=server.answer_held,
            peer=peer,
            homes=homes,
            peer_requests=peer_requests,
            gateway=soap_endpoint.LocalSoapGateway(server, {name: ports.port_wsdl(name) for name in ports.PORTS}),
            gate=domain_gate.DomainGate(server),
            url=options.url,
            requests_per_s=options.requests_per_s,
        )

    for_pilots = options.mostly_pilots and peers is None
    pilots = (
        pilot_api.PilotApi(domain, access=access.control, let_go=server.answer_held, load=load_api)
        if for_pilots
        else None
    )
    certificate = ServerCertificate(options.tls) if options.tls is not None else None
    http_server = await http_runner.serve_at(address, pilots or load_api(), certificate)
    if audit is not None:
        audit.start()
    if peers is not None:
        peers.serve_at(server.url)
    grounds.introduce(
        token=access.sites_token,
        tls=options.client_tls,
        servers=lambda: [server.url, *(each.url for each in server.membership.live_servers())],
    )
    if options.announce:
        stays = options.stays or not options.mostly_pilots
        announced = ServerAnnouncement(
            url=http_server.url, pid=os.getpid(), token=access.pilot_token, stays=stays, tls_pin=own_pin(options)
        )
        write_server_file(options.data, announced)
    try:
        yield RunningServer(
            http_server.url,
            place,
            access,
            domain,
            server,
            msgspec.structs.replace(options.client_tls, pin=own_pin(options)),
            lambda: http_runner.reload_certificate(certificate) if certificate is not None else None,
        )
    finally:
        if options.announce:
            (options.data / "server.json").unlink(missing_ok=True)
        if for_pilots:
            await http_server.wait_for_visitors()
        await http_server.stop()
        if audit is not None:
            await audit.stop()
        if peer_requests is not None:
            await peer_requests.close()


def _audit_service(options: ServerOptions, server: Server) -> "audit_service.AuditService | None":
    if not options.audit:
        return None
    return audit_service.AuditService(
        server.store, lambda: server.membership.id, server.clock.now, days=options.audit_days
    )
