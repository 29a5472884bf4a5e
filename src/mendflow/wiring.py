"""The only module that chooses concrete classes.

A data folder holds what belongs to one server: `server.json`, by which commands on this machine find the running
server; and, unless its store is elsewhere, the store and the stored files."""

import gc
import hashlib
import importlib
import os
import socket
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from mendflow.batch.router import BatchSystemRouter
from mendflow.batch.site_folders import SiteFolders
from mendflow.client import server_file
from mendflow.core.model.data import StorageElement
from mendflow.core.model.errors import InvalidRequest, StoreUnavailable
from mendflow.core.model.flow import Flow
from mendflow.core.scheduling.data_wait import DATA_WAIT_MS
from mendflow.event_loop import run
from mendflow.formats.shipped import default_patterns, default_rules
from mendflow.lazy import LazyModule
from mendflow.operations.roles import PILOT
from mendflow.server.access import AccessControl, AccessToken, is_loopback, new_token, token_hash
from mendflow.server.domain_lines import HttpDomainLines
from mendflow.server.soap.caller import HttpCaller
from mendflow.server.webhook_posts import HttpPoster
from mendflow.services.api.domain import Domain
from mendflow.services.base.clock import SystemClock, steady_ms, steady_name
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
from mendflow.services.scheduling.sites.pilot_monitor import LOOK_MS
from mendflow.stores.contract import Store
from mendflow.stores.file_lock import FileLock
from mendflow.stores.files import FolderFileStore
from mendflow.stores.shared_files import SharedFileStore
from mendflow.stores.urls import STORE_FILE, StoreLocation, has_password, store_at
from mendflow.transfer.errors import BadFileUrl, TransferFailed
from mendflow.version import VERSION

if TYPE_CHECKING:
    from mendflow.core import xml
    from mendflow.formats import jsdl
    from mendflow.formats.bpel import ports
    from mendflow.server import app as http_api
    from mendflow.server import peer_requests as http_peer_requests
    from mendflow.server import peers as http_peers
    from mendflow.server import pilot_api
    from mendflow.server import runner as http_runner
    from mendflow.services.api import case_locator, domain_gate, peer_handler, soap_endpoint
    from mendflow.transfer import listing
else:
    xml = LazyModule("mendflow.core.xml")
    jsdl = LazyModule("mendflow.formats.jsdl")
    ports = LazyModule("mendflow.formats.bpel.ports")
    http_api = LazyModule("mendflow.server.app")
    http_peer_requests = LazyModule("mendflow.server.peer_requests")
    http_peers = LazyModule("mendflow.server.peers")
    pilot_api = LazyModule("mendflow.server.pilot_api")
    http_runner = LazyModule("mendflow.server.runner")
    case_locator = LazyModule("mendflow.services.api.case_locator")
    domain_gate = LazyModule("mendflow.services.api.domain_gate")
    peer_handler = LazyModule("mendflow.services.api.peer_handler")
    soap_endpoint = LazyModule("mendflow.services.api.soap_endpoint")
    listing = LazyModule("mendflow.transfer.listing")

__all__ = [
    "DEFAULT_WAITS_MS",
    "MonitorSettings",
    "RunningServer",
    "ServerAnnouncement",
    "ServerOptions",
    "find_server",
    "has_password",
    "run",
    "running_server",
    "write_server_file",
]

SITES_TOKEN = "site-pilots"
"""The name of the token that pilots of sites use. It is derived from the store's secret, so that a server that is
restarted, and every other on the store, recognises the pilots that are there."""
GC_YOUNG_MAX = 50_000


class ServerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """`files_roots` are the folders that flows may read local files from; None: any, as for a user's own server.
    `store` is the URL of the store; without it the store is in the data folder. `url` is the public address of this
    server, if that is not where it listens; `domain` the name of the domain that it serves."""

    data: Path
    store: str = ""
    host: str = "127.0.0.1"
    port: int = 0
    url: str = ""
    domain: str = ""
    tokens: tuple[AccessToken, ...] = ()
    lease_ms: int = 30_000
    losses_max: int = 20
    files_roots: tuple[Path, ...] | None = ()
    recovery: bool = True  # whether rules are asked at all
    levels_ms: tuple[int, ...] = DEFAULT_WAITS_MS
    holds_unhandled: bool = False  # whether a case whose failure no rule takes up is held for a person
    monitor: MonitorSettings = MonitorSettings()  # the thresholds of alerts
    webhooks_to_private: bool = False  # a server that listens on this machine only may send them there anyway
    otlp: str = ""  # the collector of traces; empty: none
    sites_look_ms: int = LOOK_MS  # the interval between looks at sites
    data_wait_ms: int = DATA_WAIT_MS  # how long a job is kept back for an idle pilot that has its data
    continues_found: bool = True  # whether unfinished cases that it finds go on without being asked for
    announce: bool = True  # whether commands on this machine are to find it by its folder
    mostly_pilots: bool = False  # whether hardly anybody but its pilot will use HTTP
    listen: bool = True  # whether it serves HTTP; on a store that others share it does anyway


class ServerAnnouncement(msgspec.Struct, frozen=True, kw_only=True):
    """The content of server.json. Its token is valid only for pilots: jobs can read this file. `stays`: it takes flows
    until it is stopped, where others end with the case that they run."""

    url: str
    pid: int
    token: str = ""
    stays: bool = False


class RunningServer:
    """`pilot_token` is for local pilots; empty if no token is needed. `place` describes what it serves, for people.
    `url` is empty if it does not listen."""

    def __init__(self, url: str, place: str, pilot_token: str, domain: Domain, server: Server) -> None:
        self.shared = server.membership.shared
        self.url = url
        self.place = place
        self.pilot_token = pilot_token
        self.domain = domain
        self.server = server


def read_job(description: str, folder: Path | None) -> Flow:
    """The flow of a job description that a port received."""
    return jsdl.flow_of(xml.parse(description, "the job description"), "the job description", folder)


@asynccontextmanager
async def running_server(
    options: ServerOptions, *, domains: Mapping[str, MetaScheduler] = NO_DOMAINS
) -> AsyncIterator[RunningServer]:
    """A whole server in this process, for as long as the block lasts. `domains` are other domains that failed jobs can
    be submitted to, by name."""
    with _lock_folder(options.data, store_at(options.store, options.data)) as (located, file_store):
        place = located.shown if options.store else str(options.data)
        peers = PeerIdentity(options.data) if located.shared else None
        counts = ServerMetrics()
        async with _span_export(options, counts, peers) as offer:
            grounds = SiteFolders(options.data.absolute())
            server = _build_server(options, located, file_store, domains, peers, counts, offer, grounds)
            async with _serve(options, place, server, file_store, peers, grounds) as running:
                yield running


@contextmanager
def _lock_folder(
    data: Path, located: StoreLocation
) -> Iterator[tuple[StoreLocation, FolderFileStore | SharedFileStore]]:
    """Locks the data folder, for as long as the block lasts. The lock of a store in the folder guards the folder
    too."""
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

    def __init__(self, data: Path) -> None:
        host = socket.gethostname()
        folder = hashlib.sha256(str(data.absolute()).encode()).hexdigest()[:6]
        self.document = ServerDocument(id=f"{host}-{folder}", url="", host=host, meter=steady_name())
        self.peers = http_peers.HttpPeers()
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
    clock, private = SystemClock(), options.webhooks_to_private or is_loopback(options.host)
    return Server(
        store=MeteredStore(located.store, counts.store),
        counts=counts,
        tracer=Tracer(offer, clock) if offer is not None else None,
        file_store=file_store,
        server=peers.document if peers is not None else None,
        peers=peers.peers if peers is not None else NO_PEERS,
        meter=steady_ms,
        meter_name=steady_name(),
        clock=clock,
        settings=ServerSettings(
            lease_ms=options.lease_ms,
            losses_max=options.losses_max,
            files_roots=options.files_roots,
            recovery=options.recovery,
            levels_ms=options.levels_ms,
            holds_unhandled=options.holds_unhandled,
            monitor=options.monitor,
            sites_look_ms=options.sites_look_ms,
            data_wait_ms=options.data_wait_ms,
            continues_found=options.continues_found,
            domain=options.domain,
            host=socket.gethostname(),
        ),
        version=VERSION,
        shipped=default_rules(),
        patterns=default_patterns(),
        domains=domains,
        lines=HttpDomainLines(loopback=is_loopback(options.host) and not options.tokens),
        poster=HttpPoster(private=private),
        caller=HttpCaller(private=private),
        read_job=read_job,
        elements=WatchedElements(),
        batch_systems=BatchSystemRouter(grounds),
    )


@asynccontextmanager
async def _serve(
    options: ServerOptions,
    place: str,
    server: Server,
    file_store: FolderFileStore | SharedFileStore,
    peers: PeerIdentity | None,
    grounds: SiteFolders,
) -> AsyncIterator[RunningServer]:
    domain = Domain(server, elsewhere=peers.peers if peers is not None else None)
    try:
        await server.open()
        file_store.open()
        relax_garbage_collection()
        if options.listen or peers is not None:
            async with _serve_http(options, place, server, domain, peers, grounds) as running:
                yield running
        else:
            yield RunningServer("", place, "", domain, server)
    finally:
        await server.close()
        if isinstance(server.poster, HttpPoster):
            await server.poster.close()
        if isinstance(server.caller, HttpCaller):
            await server.caller.close()
        if isinstance(server.lines, HttpDomainLines):
            await server.lines.close()
        if peers is not None:
            await peers.peers.close()


@asynccontextmanager
async def _serve_http(
    options: ServerOptions,
    place: str,
    server: Server,
    domain: Domain,
    peers: PeerIdentity | None,
    grounds: SiteFolders,
) -> AsyncIterator[RunningServer]:
    if peers is not None:
        await peers.introduce(server.store)
    pilot_token, known = _add_pilot_token(options.tokens, peers.pilot_token if peers is not None else "")
    sites_token = derived(await shared_secret(server.store), "pilots of sites") if known else ""
    known += [AccessToken(SITES_TOKEN, frozenset({PILOT}), token_hash(sites_token))] if known else []
    server.hidden.add(pilot_token, sites_token, peers.token if peers is not None else "")
    access = AccessControl(known, servers_token=peers.token if peers is not None else "", hide=server.hidden.add)
    peer = peer_handler.PeerHandler(server) if peers is not None else None
    homes = case_locator.CaseLocator(server) if peers is not None else None
    peer_requests = (
        http_peer_requests.PeerRequests(homes.find, peers.token) if homes is not None and peers is not None else None
    )

    def load_api() -> "http_api.Api":
        return http_api.create_app(
            domain,
            access=access,
            let_go=server.answer_held,
            peer=peer,
            homes=homes,
            peer_requests=peer_requests,
            gateway=soap_endpoint.LocalSoapGateway(server, {name: ports.port_wsdl(name) for name in ports.PORTS}),
            gate=domain_gate.DomainGate(server),
            url=options.url,
        )

    for_pilots = options.mostly_pilots and peers is None
    pilots = pilot_api.PilotApi(domain, access=access, let_go=server.answer_held, load=load_api) if for_pilots else None
    http_server = await http_runner.serve(pilots or load_api(), options.host, options.port)
    if peers is not None:
        peers.serve_at(options.url or http_server.public_url)
    own_url = options.url or http_server.public_url
    server.listens_at(own_url)
    grounds.introduce(
        token=sites_token, servers=lambda: [own_url, *(each.url for each in server.membership.live_servers())]
    )
    if options.announce:
        stays = not options.mostly_pilots
        announced = ServerAnnouncement(url=http_server.url, pid=os.getpid(), token=pilot_token, stays=stays)
        write_server_file(options.data, announced)
    try:
        yield RunningServer(http_server.url, place, pilot_token, domain, server)
    finally:
        if options.announce:
            (options.data / "server.json").unlink(missing_ok=True)
        await http_server.stop()
        if peer_requests is not None:
            await peer_requests.close()


def _add_pilot_token(tokens: Sequence[AccessToken], shared: str) -> tuple[str, list[AccessToken]]:
    """Add a token for the pilots that this server starts itself: what a job can read of its pilot must not let it do
    more than a pilot may. It is new each time, or `shared` with other servers, which such a pilot may connect to."""
    if not tokens:
        return "", []
    token = shared or new_token("local-pilot", [PILOT])[0]
    return token, [*tokens, AccessToken("local-pilot", frozenset({PILOT}), token_hash(token))]


def relax_garbage_collection() -> None:
    """A server holds a great many small objects that live long, and makes hardly any cycles: searching all of them for
    cycles, as often as Python does by default, would cost more than the work itself."""
    gc.freeze()
    gc.set_threshold(GC_YOUNG_MAX, 20, 100)


def write_server_file(data: Path, content: ServerAnnouncement) -> None:
    """Write the file atomically, readable only by its owner."""
    draft = data / f"server.json.{content.pid}"
    descriptor = os.open(draft, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as out:
        out.write(msgspec.json.encode(content))
    os.replace(draft, data / "server.json")


def find_server(data: Path) -> ServerAnnouncement | None:
    """The server that runs on this data folder, found by the same rule as commands use."""
    found = server_file.find_server(data)
    return ServerAnnouncement(url=found.url, pid=found.pid, token=found.token, stays=found.stays) if found else None
