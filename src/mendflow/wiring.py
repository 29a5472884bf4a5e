"""The only place where concrete classes meet.

A data folder holds what is one server's own: `server.json`, by which commands on this machine find the server while it
runs; and, unless its store is elsewhere, the store and the stored files."""

import asyncio
import gc
import hashlib
import importlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

import msgspec

from mendflow.batch.grounds import Grounds
from mendflow.batch.systems import BatchSystems
from mendflow.client import server_file
from mendflow.core.model.data import StorageElement
from mendflow.core.model.flow import Flow
from mendflow.core.model.problems import Invalid, StoreUnavailable
from mendflow.core.model.rules import RuleSet
from mendflow.core.scheduling.data_wait import DATA_WAIT_MS
from mendflow.core.xml import parse
from mendflow.event_loop import run
from mendflow.formats.bpel.ports import PORTS, port_wsdl
from mendflow.formats.jsdl import flow_of
from mendflow.formats.patterns import house_patterns
from mendflow.formats.rules import read_rules
from mendflow.server.access import PILOT, Access, Token, hash_of, is_loopback, new_token
from mendflow.server.app import create_app
from mendflow.server.passing import Passing
from mendflow.server.peers import HttpNeighbours
from mendflow.server.posting import HttpPoster
from mendflow.server.runner import serve
from mendflow.server.soap.caller import HttpCaller
from mendflow.services.api.case_locator import Whereabouts
from mendflow.services.api.local_domain import LocalDomain
from mendflow.services.api.peer_handler import Counterpart
from mendflow.services.api.soap_endpoint import LocalOffice
from mendflow.services.base.clock import SystemClock, steady_ms, steady_name
from mendflow.services.base.cluster import NO_NEIGHBOURS, ServerDocument
from mendflow.services.base.contracts import Keeper, MetaScheduler
from mendflow.services.base.counters import Counts
from mendflow.services.cluster.shared_secret import derived, shared_secret
from mendflow.services.data.watches.storage import NotSeen, Seen
from mendflow.services.observe.metered_store import MeteredStore
from mendflow.services.observe.monitor_settings import MonitorRules
from mendflow.services.observe.tracing.tracer import Offer, Tracer
from mendflow.services.recovery.levels import DEFAULT_WAITS_MS
from mendflow.services.runtime.server import NO_DOMAINS, House, HouseRules
from mendflow.services.scheduling.sites.pilot_monitor import LOOK_MS
from mendflow.stores.contract import Store
from mendflow.stores.file_lock import FileLock
from mendflow.stores.files import FolderKeeper
from mendflow.stores.shared_files import SharedKeeper
from mendflow.stores.urls import STORE_FILE, Located, has_password, store_at
from mendflow.transfer import looking
from mendflow.transfer.problems import BadPlace, TransferFailed

__all__ = [
    "DEFAULT_WAITS_MS",
    "LocalPilot",
    "MonitorRules",
    "RunningServer",
    "ServerFile",
    "ServerOptions",
    "find_server",
    "has_password",
    "house_rules",
    "run",
    "running_server",
    "start_pilot",
    "write_server_file",
]

STOP_PILOT_S = 15
SITES_TOKEN = "site-pilots"
"""The name of the token that pilots of sites show. It comes from the store's secret, so that a server that is started
again, and every other on the store, knows the pilots that are there."""
GARBAGE_YOUNG_MAX = 50_000


class ServerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """`files_roots` are the folders that flows may read given files from; None: any, as the user's own server may.
    `store` is the URL of the store; without it the store is in the data folder. `url` is where others reach this
    server, if that is not where it listens."""

    data: Path
    store: str = ""
    host: str = "127.0.0.1"
    port: int = 0
    url: str = ""
    tokens: tuple[Token, ...] = ()
    lease_ms: int = 30_000
    losses_max: int = 20
    files_roots: tuple[Path, ...] | None = ()
    recovery: bool = True  # whether rules are asked at all
    levels_ms: tuple[int, ...] = DEFAULT_WAITS_MS
    monitor: MonitorRules = MonitorRules()  # from when on there is an alert
    webhooks_to_private: bool = False  # a server that listens on this machine only may send them there anyway
    otlp: str = ""  # the collector that traces go to; empty: none
    sites_look_ms: int = LOOK_MS  # how often sites are looked at
    data_wait_ms: int = DATA_WAIT_MS  # how long a job is kept back for an idle pilot that has its data
    announce: bool = True  # whether commands on this machine are to find it by its folder


class ServerFile(msgspec.Struct, frozen=True, kw_only=True):
    """What server.json says. The token is good for a pilot and for nothing else: jobs can read this file."""

    url: str
    pid: int
    token: str = ""


class RunningServer:
    """`pilot_token` is what local pilots show; empty where no token is wanted. `place` is what it serves from, as
    people are told."""

    def __init__(self, url: str, place: str, pilot_token: str, domain: LocalDomain, house: House) -> None:
        self.url = url
        self.place = place
        self.pilot_token = pilot_token
        self.domain = domain
        self.house = house


def read_job(description: str, folder: Path | None) -> Flow:
    """The flow of a job description that came over a port."""
    return flow_of(parse(description, "the job description"), "the job description", folder)


def house_rules() -> RuleSet:
    """The rules that ship with the product."""
    source = files("mendflow").joinpath("defaults", "rules.yaml")
    return read_rules(source.read_text(encoding="utf-8"), "defaults/rules.yaml")


@asynccontextmanager
async def running_server(
    options: ServerOptions, *, domains: Mapping[str, MetaScheduler] = NO_DOMAINS
) -> AsyncIterator[RunningServer]:
    """A whole server in this process, for as long as the block lasts. `domains` are other ones that failed jobs can go
    to, by name."""
    with _own_folder(options.data, store_at(options.store, options.data)) as (located, keeper):
        place = located.shown if options.store else str(options.data)
        others = Others(options.data) if located.shared else None
        counts = Counts()
        async with _exporting(options, counts, others) as offer:
            grounds = Grounds(options.data.absolute())
            house = _house(options, located, keeper, domains, others, counts, offer, grounds)
            async with _served(options, place, house, keeper, others, grounds) as running:
                yield running


@contextmanager
def _own_folder(data: Path, located: Located) -> Iterator[tuple[Located, FolderKeeper | SharedKeeper]]:
    """The data folder, for as long as the block lasts. The lock of a store in the folder guards the folder too."""
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreUnavailable(f"the data folder {data} cannot be made: {error.strerror}") from error
    files = FolderKeeper(data / "files")
    with ExitStack() as stack:
        if located.file != data / STORE_FILE:
            lock = FileLock(data / "server", "folder")
            lock.take()
            stack.callback(lock.give_back)
        yield located, SharedKeeper(located.store, files) if located.shared else files


class Others:
    """What a server needs on a store that it shares: who it is to the others, and the way to them. It is known by its
    machine and its folder, so that one that is started again is the same."""

    def __init__(self, data: Path) -> None:
        host = socket.gethostname()
        folder = hashlib.sha256(str(data.absolute()).encode()).hexdigest()[:6]
        self.document = ServerDocument(id=f"{host}-{folder}", url="", host=host, meter=steady_name())
        self.neighbours = HttpNeighbours()
        self.token = ""
        self.pilot_token = ""

    async def introduce(self, store: Store) -> None:
        secret = await shared_secret(store)
        self.token, self.pilot_token = derived(secret, "server"), derived(secret, "local pilot")
        self.neighbours.introduce(self.token)

    def serve_at(self, url: str) -> None:
        """The next beat tells it."""
        self.document.url = url


@asynccontextmanager
async def _exporting(options: ServerOptions, counts: Counts, others: Others | None) -> AsyncIterator[Offer | None]:
    """Where spans go, if they are wanted. What sends them is loaded only then: it needs what not everybody has."""
    if not options.otlp:
        yield None
        return
    try:
        otlp = importlib.import_module("mendflow.server.otlp")
    except ImportError as error:
        raise Invalid(f"traces need what is not installed ({error}): pip install 'mendflow[traces]'") from error
    about = {
        "service.name": os.environ.get("OTEL_SERVICE_NAME", "mendflow"),
        "service.version": version("mendflow"),
        "service.instance.id": others.document.id if others is not None else socket.gethostname(),
    }
    exporter = otlp.OtlpExporter(options.otlp, about=about, counts=counts.spans)
    exporter.start()
    try:
        yield exporter.offer
    finally:
        await exporter.stop()


class WatchedElements:
    """The way to storage elements that a server watches."""

    async def list(self, element: StorageElement, prefix: str) -> Sequence[Seen]:
        with _told_as(NotSeen):
            return [Seen(each.path, each.bytes, each.identity) for each in await looking.listed(element, prefix)]

    async def read(self, element: StorageElement, path: str) -> tuple[Seen, str]:
        with _told_as(NotSeen):
            found, digest = await looking.digested(element, path)
        return Seen(found.path, found.bytes, found.identity), digest


@contextmanager
def _told_as(problem: type[Exception]) -> Iterator[None]:
    """What comes in the way of a transfer, in the words of whoever asked."""
    try:
        yield
    except (TransferFailed, BadPlace) as error:
        raise problem(str(error)) from error


def _house(
    options: ServerOptions,
    located: Located,
    keeper: Keeper,
    domains: Mapping[str, MetaScheduler],
    others: Others | None,
    counts: Counts,
    offer: Offer | None,
    grounds: Grounds,
) -> House:
    clock, private = SystemClock(), options.webhooks_to_private or is_loopback(options.host)
    return House(
        store=MeteredStore(located.store, counts.store),
        counts=counts,
        tracer=Tracer(offer, clock) if offer is not None else None,
        keeper=keeper,
        server=others.document if others is not None else None,
        neighbours=others.neighbours if others is not None else NO_NEIGHBOURS,
        meter=steady_ms,
        clock=clock,
        rules=HouseRules(
            lease_ms=options.lease_ms,
            losses_max=options.losses_max,
            files_roots=options.files_roots,
            recovery=options.recovery,
            levels_ms=options.levels_ms,
            monitor=options.monitor,
            sites_look_ms=options.sites_look_ms,
            data_wait_ms=options.data_wait_ms,
        ),
        version=version("mendflow"),
        shipped=house_rules(),
        patterns=house_patterns(),
        domains=domains,
        poster=HttpPoster(private=private),
        caller=HttpCaller(private=private),
        read_job=read_job,
        elements=WatchedElements(),
        batches=BatchSystems(grounds),
    )


@asynccontextmanager
async def _served(
    options: ServerOptions,
    place: str,
    house: House,
    keeper: FolderKeeper | SharedKeeper,
    others: Others | None,
    grounds: Grounds,
) -> AsyncIterator[RunningServer]:
    data, domain = options.data, LocalDomain(house, elsewhere=others.neighbours if others is not None else None)
    try:
        await house.open()
        keeper.open()
        collect_seldom()
        if others is not None:
            await others.introduce(house.store)
        pilot_token, known = _with_local_pilot(options.tokens, others.pilot_token if others is not None else "")
        sites_token = derived(await shared_secret(house.store), "pilots of sites") if known else ""
        known += [Token(SITES_TOKEN, frozenset({PILOT}), hash_of(sites_token))] if known else []
        access = Access(known, servers_token=others.token if others is not None else "")
        peer = Counterpart(house) if others is not None else None
        where = Whereabouts(house) if others is not None else None
        passing = Passing(where.find, others.token) if where is not None and others is not None else None
        app = create_app(
            domain,
            access=access,
            let_go=house.let_go,
            peer=peer,
            where=where,
            passing=passing,
            office=LocalOffice(house, {name: port_wsdl(name) for name in PORTS}),
            url=options.url,
        )
        served = await serve(app, options.host, options.port)
        if others is not None:
            others.serve_at(options.url or served.url_for_others)
        own_url = options.url or served.url_for_others
        house.listens_at(own_url)
        grounds.introduce(
            token=sites_token, servers=lambda: [own_url, *(each.url for each in house.membership.living())]
        )
        if options.announce:
            write_server_file(data, ServerFile(url=served.url, pid=os.getpid(), token=pilot_token))
        try:
            yield RunningServer(served.url, place, pilot_token, domain, house)
        finally:
            if options.announce:
                (data / "server.json").unlink(missing_ok=True)
            await served.stop()
            if passing is not None:
                await passing.close()
    finally:
        await house.close()
        if isinstance(house.poster, HttpPoster):
            await house.poster.close()
        if isinstance(house.caller, HttpCaller):
            await house.caller.close()
        if others is not None:
            await others.neighbours.close()


def _with_local_pilot(tokens: Sequence[Token], shared: str) -> tuple[str, list[Token]]:
    """A token for pilots that this server starts itself: what a job can read of its pilot must not let it do more than
    a pilot may. Made anew each time, or `shared` with other servers, which such a pilot may go to."""
    if not tokens:
        return "", []
    token = shared or new_token("local-pilot", [PILOT])[0]
    return token, [*tokens, Token("local-pilot", frozenset({PILOT}), hash_of(token))]


def collect_seldom() -> None:
    """A server holds a great many small values that live long, and makes hardly any cycles: looking through all of
    them for cycles, as often as Python does by default, would cost more than the work itself."""
    gc.freeze()
    gc.set_threshold(GARBAGE_YOUNG_MAX, 20, 100)


def write_server_file(data: Path, content: ServerFile) -> None:
    """Whole or not at all, and for its owner's eyes only."""
    draft = data / f"server.json.{content.pid}"
    descriptor = os.open(draft, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as out:
        out.write(msgspec.json.encode(content))
    os.replace(draft, data / "server.json")


def find_server(data: Path) -> ServerFile | None:
    """The server that runs on this data folder, by the same rule as commands go by."""
    found = server_file.find_server(data)
    return ServerFile(url=found.url, pid=found.pid, token=found.token) if found else None


class LocalPilot:
    """A pilot process on this machine, started and stopped by us."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process = process
        self.log = log
        self._asked = False

    def ask_to_leave(self) -> None:
        """The first time it lets its jobs end within their grace, the second time it leaves at once. The second signal
        is another one: of two of a kind that a busy machine has not yet delivered, one is lost."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT if self._asked else signal.SIGTERM)
            self._asked = True

    async def stop(self, patience_s: float) -> None:
        """Ask it to end its jobs and leave; insist if it does not."""
        self.ask_to_leave()
        try:
            await asyncio.to_thread(self.process.wait, patience_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            await asyncio.to_thread(self.process.wait)


def start_pilot(
    url: str,
    *,
    work: Path,
    slots: int,
    token: str = "",
    site: str = "",
    server_file: Path | None = None,
    extra: Sequence[str] = (),
) -> LocalPilot:
    """Start a pilot as a process of its own. The token goes by the environment, so that no process list shows it. By
    `server_file` the pilot finds the next server, should this one be killed."""
    work.mkdir(mode=0o700, parents=True, exist_ok=True)
    log = work / "pilot.log"
    command = [sys.executable, "-m", "mendflow.pilot", "--server", url, "--work", str(work), "--jobs", str(slots)]
    command += [*(["--site", site] if site else []), *extra]
    command += ["--server-file", str(server_file.absolute())] if server_file is not None else []
    environment = {**os.environ, **({"MENDFLOW_TOKEN": token} if token else {})}
    with log.open("ab") as out:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=environment, start_new_session=True
        )
    return LocalPilot(process, log)
