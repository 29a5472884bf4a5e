"""A server's side of the pilot exchange, over real HTTP, and pilots in processes of their own."""

import asyncio
import gzip
import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio
from aiohttp import web

from mendflow.core.model.data import (
    LocateAnswer,
    LocateRequest,
    PlaceAnswer,
    PlaceRequest,
    ReplicaLocation,
    StorageElement,
    StoreAnswer,
    StoreRequest,
)
from mendflow.core.model.ids import ItemId, JobId
from mendflow.core.model.jobs import FunctionRef, JobSpec, Outcome
from mendflow.core.model.sync import (
    Assignment,
    AttemptControl,
    AttemptOrder,
    AttemptRef,
    AttemptStatus,
    LogPart,
    LogRequest,
    SyncAnswer,
    SyncRequest,
)
from mendflow.core.model.values import FileRef, Value
from tests.patience import PATIENCE_S
from tests.pilot.command_line import CommandLine
from tests.pilot.processes import environment, living


@dataclass
class Grant:
    pilot: str
    fence: int
    serial: int


@dataclass
class Ledger:
    """What the server knows. Grants raise the fence; a report under an older one is refused."""

    lease_ms: int = 6_000
    idle_exit_ms: int = 0
    token: str = ""
    waiting: list[JobId] = field(default_factory=list)
    specs: dict[JobId, JobSpec] = field(default_factory=dict)
    fences: dict[JobId, int] = field(default_factory=dict)
    numbers: dict[JobId, int] = field(default_factory=dict)  # which try it is, where that is not the fence
    grants: dict[JobId, Grant] = field(default_factory=dict)
    outcomes: dict[JobId, Outcome] = field(default_factory=dict)
    accepted_fences: dict[JobId, list[int]] = field(default_factory=dict)
    beats: dict[JobId, AttemptStatus] = field(default_factory=dict)
    orders: list[AttemptOrder] = field(default_factory=list)
    log_requests: list[LogRequest] = field(default_factory=list)
    log_parts: list[LogPart] = field(default_factory=list)
    revoked: set[tuple[str, int]] = field(default_factory=set)
    files: dict[str, bytes] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)
    sent_together: list[int] = field(default_factory=list)
    requests: list[SyncRequest] = field(default_factory=list)
    lease_end: float = 0.0
    located: dict[str, list[ReplicaLocation]] = field(default_factory=dict)
    element: StorageElement | None = None  # where everything goes that is published
    placed: list[PlaceRequest] = field(default_factory=list)
    silent: bool = False  # no exchange is answered; other questions are

    def lapse(self, job: JobId) -> None:
        """Take a job away from whoever holds it, and let it be granted again."""
        grant = self.grants.pop(job)
        self.revoked.add((job, grant.fence))
        self.waiting.append(job)


class Server:
    """Real HTTP on a port that stays the same when the server goes away and comes back."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self.changed = asyncio.Condition()
        self.newest: dict[str, int] = {}
        self._runner: web.AppRunner | None = None
        self.port = 0
        self.before_place: Callable[[], Awaitable[None]] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def starts(self) -> int:
        """How often the pilot has been started, by its requests."""
        return max((request.serial >> 32 for request in self.ledger.requests), default=0)

    async def until_next_agent_names(self, job: JobId, starts: int) -> None:
        """The last request of an agent that was killed may be read after its end."""
        await self.until(
            lambda: any(
                request.serial >> 32 > starts and beat.job == job
                for request in self.ledger.requests
                for beat in request.running
            ),
            "the new agent to name the job",
        )

    async def up(self) -> None:
        app = web.Application(client_max_size=1 << 30)
        app.router.add_post("/api/v1/pilots/sync", self._sync)
        app.router.add_post("/api/v1/pilots/locate", self._locate)
        app.router.add_post("/api/v1/pilots/place", self._place)
        app.router.add_post("/api/v1/pilots/files", self._put_many)
        app.router.add_get("/api/v1/files/{sha}", self._get)
        app.router.add_put("/api/v1/files/{sha}", self._put)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True)
        await site.start()
        server = site._server
        assert isinstance(server, asyncio.Server)
        self.port = server.sockets[0].getsockname()[1]

    async def down(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _get(self, request: web.Request) -> web.Response:
        content = self.ledger.files.get(request.match_info["sha"])
        return web.Response(status=404, text="no such file") if content is None else web.Response(body=content)

    async def _put(self, request: web.Request) -> web.Response:
        content = await request.read()
        sha = hashlib.sha256(content).hexdigest()
        if sha != request.match_info["sha"]:
            return web.Response(status=400, text="the digest does not fit")
        self.ledger.files[sha] = content
        ref = FileRef(sha256=sha, bytes=len(content), name=request.query["name"])
        return web.Response(body=msgspec.json.encode(ref), content_type="application/json")

    async def _put_many(self, request: web.Request) -> web.Response:
        asked = msgspec.msgpack.decode(await request.read(), type=StoreRequest)
        if any(hashlib.sha256(content).hexdigest() != sha for sha, content in asked.contents.items()):
            return web.Response(status=400, text="the digest does not fit")
        self.ledger.files |= asked.contents
        self.ledger.sent_together.append(len(asked.contents))
        return web.Response(body=msgspec.msgpack.encode(StoreAnswer(stored=len(asked.contents))))

    async def _locate(self, http: web.Request) -> web.Response:
        asked = msgspec.msgpack.decode(await http.read(), type=LocateRequest)
        known = self.ledger.located
        wrong = {name: f"{name} is not in the catalogue" for name in asked.names if name not in known}
        answer = LocateAnswer(files={name: known[name] for name in asked.names if name in known}, wrong=wrong)
        return web.Response(body=msgspec.msgpack.encode(answer))

    async def _place(self, http: web.Request) -> web.Response:
        asked = msgspec.msgpack.decode(await http.read(), type=PlaceRequest)
        self.ledger.placed.append(asked)
        if self.before_place is not None:
            await self.before_place()
        element = self.ledger.element
        if element is None:
            return web.Response(body=msgspec.msgpack.encode(PlaceAnswer(wrong=dict.fromkeys(asked.files, "nowhere"))))
        names = {name: placing.publication.logical for name, placing in asked.files.items()}
        files = {name: ReplicaLocation(element=element, url=element.url + logical) for name, logical in names.items()}
        return web.Response(body=msgspec.msgpack.encode(PlaceAnswer(files=files)))

    async def _sync(self, http: web.Request) -> web.Response:
        if self.ledger.token and http.headers.get("Authorization") != f"Bearer {self.ledger.token}":
            return web.Response(status=401, text="a token is needed")
        while self.ledger.silent:
            await asyncio.sleep(0.02)
        request = msgspec.msgpack.decode(await http.read(), type=SyncRequest)
        self.newest[request.pilot] = max(self.newest.get(request.pilot, 0), request.serial)
        async with self.changed:
            self.ledger.requests.append(request)
            answer = self._answer(request)
            self.changed.notify_all()
            end = time.monotonic() + request.wait_ms / 1000
            while not self._says(answer) and time.monotonic() < end and self.newest[request.pilot] == request.serial:
                try:
                    await asyncio.wait_for(self.changed.wait(), max(0, end - time.monotonic()))
                except TimeoutError:
                    break
                if self.newest[request.pilot] == request.serial:
                    answer = self._answer(request, again=True)
            self.ledger.lease_end = time.monotonic() + self.ledger.lease_ms / 1000
        return web.Response(body=msgspec.msgpack.encode(answer), content_type="application/msgpack")

    @staticmethod
    def _says(answer: SyncAnswer) -> bool:
        return bool(answer.jobs or answer.accepted or answer.refused or answer.lost or answer.orders or answer.logs)

    def _answer(self, request: SyncRequest, again: bool = False) -> SyncAnswer:
        ledger = self.ledger
        accepted, refused = [], []
        for report in () if again else request.reports:
            grant = ledger.grants.get(report.job)
            ref = AttemptRef(report.job, report.fence)
            if report.fence in ledger.accepted_fences.get(report.job, []):
                accepted.append(ref)
            elif grant is not None and grant.fence == report.fence:
                ledger.outcomes[report.job] = report.outcome
                ledger.accepted_fences.setdefault(report.job, []).append(report.fence)
                del ledger.grants[report.job]
                accepted.append(ref)
            else:
                refused.append(ref)
        named = {(beat.job, beat.fence) for beat in request.running}
        lost = []
        for beat in request.running:
            ledger.beats[beat.job] = beat
            grant = ledger.grants.get(beat.job)
            if grant is None or grant.fence != beat.fence:
                lost.append(AttemptRef(beat.job, beat.fence))
        for job, grant in list(ledger.grants.items()):
            if grant.pilot == request.pilot and grant.serial <= request.heard and (job, grant.fence) not in named:
                ledger.lapse(job)
        orders = [order for order in ledger.orders if (order.job, order.fence) in named]
        ledger.orders = [order for order in ledger.orders if order not in orders]
        ledger.log_parts += () if again else request.logs
        logs, ledger.log_requests = ledger.log_requests, []
        jobs: list[Assignment] = []
        while ledger.waiting and len(jobs) < request.want and not request.leaving:
            job = ledger.waiting.pop(0)
            ledger.fences[job] = ledger.fences.get(job, 0) + 1
            ledger.grants[job] = Grant(request.pilot, ledger.fences[job], request.serial)
            number, own = ledger.numbers.get(job, 0), {use.name for use in ledger.specs[job].secrets}
            secrets = {name: value for name, value in ledger.secrets.items() if name in own}
            jobs.append(Assignment(job, ledger.fences[job], ledger.specs[job], number, secrets=secrets))
        return SyncAnswer(
            serial=request.serial,
            lease_ms=ledger.lease_ms,
            idle_exit_ms=ledger.idle_exit_ms,
            jobs=jobs,
            accepted=accepted,
            refused=refused,
            lost=lost,
            orders=orders,
            logs=logs,
        )

    async def submit(self, spec: JobSpec) -> JobId:
        job = JobId(f"case-1/{len(self.ledger.specs) + 1}")
        async with self.changed:
            self.ledger.specs[job] = spec
            self.ledger.waiting.append(job)
            self.changed.notify_all()
        return job

    async def order(self, job: JobId, control: AttemptControl) -> None:
        async with self.changed:
            self.ledger.orders.append(AttemptOrder(job, self.ledger.fences[job], control))
            self.changed.notify_all()

    async def log_part(self, job: JobId, offset: int) -> LogPart:
        """What the pilot sends of the log of a job that runs."""
        async with self.changed:
            self.ledger.log_requests.append(LogRequest(job, self.ledger.fences[job], offset))
            self.changed.notify_all()
        await self.until(lambda: any(part.asked == offset for part in self.ledger.log_parts), f"the log of {job}")
        (part,) = self.ledger.log_parts
        self.ledger.log_parts = []
        return part

    async def until(self, holds: Callable[[], bool], what: str, patience_s: float = PATIENCE_S) -> None:
        """Wait until something holds; look again at each exchange, and often enough for what the world does."""
        end = time.monotonic() + patience_s
        while not holds():
            assert time.monotonic() < end, f"waited {patience_s} s for: {what}"
            await asyncio.sleep(0.01)

    async def outcome(self, job: JobId, patience_s: float = PATIENCE_S) -> Outcome:
        await self.until(lambda: job in self.ledger.outcomes, f"outcome of {job}", patience_s)
        return self.ledger.outcomes[job]

    async def running(self, job: JobId) -> AttemptStatus:
        def runs() -> bool:
            beat = self.ledger.beats.get(job)
            return beat is not None and beat.fence == self.ledger.fences[job] and beat.state == "running"

        await self.until(runs, f"{job} to be running")
        return self.ledger.beats[job]

    async def shell(self, command: str, **more: Value) -> JobId:
        return await self.submit(JobSpec(item=ItemId("item"), command=command, **more))

    def log(self, outcome: Outcome) -> bytes:
        """The whole log of an attempt, as it was stored."""
        assert outcome.log is not None
        return gzip.decompress(self.ledger.files[outcome.log.file.sha256])

    def keep(self, content: bytes, name: str = "file") -> FileRef:
        sha = hashlib.sha256(content).hexdigest()
        self.ledger.files[sha] = content
        return FileRef(sha256=sha, bytes=len(content), name=name)

    async def call(self, source: str, name: str, *args: Value, module: str = "given", **more: Value) -> JobId:
        code = self.keep(source.encode(), f"{module}.py")
        function = FunctionRef(module=module, name=name, code=code)
        return await self.submit(JobSpec(item=ItemId("item"), function=function, args=list(args), **more))


class Pilot:
    """A pilot process, and what is known of it from outside."""

    def __init__(self, server: str, work: Path, *arguments: str, slots: int = 1) -> None:
        self.work = work
        self.command = [
            *(sys.executable, "-m", "mendflow.pilot", "--server", server, "--work", str(work)),
            *("--jobs", str(slots), *arguments),
        ]
        self.process = self._start()

    def _start(self) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(self.command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def restart(self) -> None:
        self.process = self._start()

    def kill(self) -> None:
        """With -9: only the agent, as somebody who knows one pid would."""
        self.process.kill()
        self.process.wait()

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(20)

    def pids(self) -> list[int]:
        """All living processes that carry this pilot's name."""
        try:
            name = msgspec.json.decode((self.work / "pilot.json").read_bytes())["pilot"]
        except OSError:
            return []
        mark = f"MENDFLOW_PILOT={name}".encode()
        return [pid for pid in living() if mark in environment(pid)]


@pytest.fixture
def command_line(tmp_path: Path) -> Iterator[CommandLine]:
    made = CommandLine(tmp_path)
    yield made
    for process in made.started:
        if process.poll() is None:
            process.terminate()
            process.wait(30)
        assert process.stdout is not None
        process.stdout.close()


GOING_S = 10
"""What was killed is there for a moment more, on a busy machine for longer."""


@asynccontextmanager
async def hiring(server: Server, work_folder: Path) -> AsyncIterator[Callable[..., Pilot]]:
    """Starts pilots; at the end they are told to leave, and must leave nothing behind."""
    pilots: list[Pilot] = []

    def start(*arguments: str, slots: int = 1, work: Path | None = None) -> Pilot:
        pilot = Pilot(server.url, work or work_folder, *arguments, slots=slots)
        pilots.append(pilot)
        return pilot

    yield start
    for pilot in pilots:
        if pilot.process.poll() is None:
            pilot.process.send_signal(signal.SIGTERM)
            pilot.process.send_signal(signal.SIGTERM)
            await asyncio.to_thread(pilot.process.wait, 20)
        assert pilot.process.stderr is not None
        print(pilot.process.stderr.read().decode())
    end = time.monotonic() + GOING_S
    while (left := [pid for pilot in pilots for pid in pilot.pids()]) and time.monotonic() < end:
        await asyncio.sleep(0.02)
    for pid in left:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    assert not left, "the pilots left processes behind"


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    server = Server()
    await server.up()
    yield server
    await server.down()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def staffed(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    """With one pilot for all tests of a file whose jobs do not depend on each other: to start one takes more than most
    jobs. These tests are marked asyncio with the loop of their module."""
    server = Server()
    await server.up()
    async with hiring(server, tmp_path_factory.mktemp("pilot") / "work") as hire:
        hire()
        yield server
    await server.down()


@pytest.fixture
async def hire(server: Server, tmp_path: Path) -> AsyncIterator[Callable[..., Pilot]]:
    async with hiring(server, tmp_path / "work") as start:
        yield start
