"""The agent's side of its slots: starts them, finds those of an earlier agent, and exchanges messages."""

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from typing import cast

import msgspec

from mendflow.pilot.files.work_folder import WorkFolder
from mendflow.pilot.slot.messages import AttemptKey, FrameReader, FromSlot, SlotWork, ToSlot, frame
from mendflow.pilot.slot.monitor import now_ms
from mendflow.pilot.slot.process_tags import tag_process
from mendflow.pilot.slot.processes import children, kill_tree
from mendflow.pilot.slot.settings import SlotSettings
from mendflow.pilot.slot.spare import MODULE, SpareSlot

_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(FromSlot)


class SlotLink(asyncio.Protocol):
    """A connection to one slot process. Messages for it are batched."""

    def __init__(
        self,
        number: int,
        on_message: Callable[["SlotLink", FromSlot], None],
        on_lost: Callable[["SlotLink"], None],
        now_ms: Callable[[], int] = now_ms,
    ) -> None:
        self.number = number
        self._now_ms = now_ms
        self.process: subprocess.Popen[bytes] | None = None
        self.pid = 0
        self.holds: set[AttemptKey] = set()
        self.last_message_at = self._now_ms()  # or when it got work, after which it must be heard
        self.began_at = self.last_message_at  # the earliest moment at which its running attempt can have started
        self.retiring = False
        self.is_stale = False  # it starts jobs otherwise than this agent is to
        self.alive = False
        self.closed = asyncio.Event()
        self.hello_received: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._on_message, self._on_lost = on_message, on_lost
        self._frames = FrameReader()
        self._transport: asyncio.Transport | None = None
        self._run: list[SlotWork] = []
        self._acks: list[AttemptKey] = []
        self._controls: list[tuple[str, int, str]] = []
        self._recall = False
        self._scheduled = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.alive = True

    def connection_lost(self, _exc: Exception | None) -> None:
        self.alive = False
        self.closed.set()
        if not self.hello_received.done():
            self.hello_received.set_result(False)
        self._on_lost(self)

    def data_received(self, data: bytes) -> None:
        self.last_message_at = self._now_ms()
        for encoded in self._frames.feed(data):
            message = _DECODER.decode(encoded)
            if message.hello:
                self.pid = message.pid
            if message.done:
                self.began_at = self.last_message_at
            self._on_message(self, message)
            if message.hello and not self.hello_received.done():
                self.hello_received.set_result(True)

    def run(self, work: SlotWork) -> None:
        if not self.holds:
            self.last_message_at = self.began_at = self._now_ms()
        self.holds.add(work.key)
        self._run.append(work)
        self._schedule_send()

    def busy_ms(self, now: int) -> int:
        """How long its running attempt may have been running; 0 if it has none."""
        return now - self.began_at if self.holds else 0

    def ack(self, key: AttemptKey) -> None:
        self._acks.append(key)
        self._schedule_send()

    def control(self, key: AttemptKey, control: str) -> None:
        self._controls.append((*key, control))
        self._schedule_send()

    def recall(self) -> None:
        self._recall = True
        self._schedule_send()

    def stop(self) -> None:
        if self._transport is not None and self.alive:
            self._write(ToSlot(stop=True))

    def _schedule_send(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._send)

    def _send(self) -> None:
        self._scheduled = False
        message = ToSlot(self._run, self._acks, self._controls, self._recall)
        self._run, self._acks, self._controls, self._recall = [], [], [], False
        if self.alive:
            self._write(message)

    def _write(self, message: ToSlot) -> None:
        assert self._transport is not None
        self._transport.write(frame(_ENCODER.encode(message)))


async def start_slot(
    link: SlotLink, work_folder: WorkFolder, *, pilot: str, settings: SlotSettings, spare: SpareSlot | None = None
) -> None:
    """Start a slot process, or take the spare one. Its socket exists before it is a slot, so messages can be sent at
    once."""
    path = work_folder.socket_of(link.number)
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listener, _short(work_folder) as short:
        listener.bind(f"{short.path}/{path.name}")
        listener.listen(8)
        arguments = [str(work_folder.folder), str(link.number), msgspec.json.encode(settings).decode()]
        taken = spare.take(arguments, listener.fileno(), pilot) if spare is not None else None
        link.process = taken or _spawn(arguments, listener.fileno(), pilot, settings)
        link.pid = link.process.pid
        tag_process(link.pid, pilot)
        connected = await connect_slot(link, work_folder)
        assert connected, "the listener is open in this very process"


def _spawn(arguments: list[str], listener: int, pilot: str, settings: SlotSettings) -> "subprocess.Popen[bytes]":
    folder, number, encoded = arguments
    return subprocess.Popen(
        [sys.executable, "-P", "-m", MODULE, folder, number, str(listener), encoded],
        pass_fds=[listener],
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        env=settings.variables.select(os.environ) | {"MENDFLOW_PILOT": pilot},
    )


def starts_jobs_as(pid: int, settings: SlotSettings) -> bool:
    """Whether a slot, perhaps of an earlier agent, starts jobs with these variables and under these accounts. What it
    was told is on its command line; a slot that was a spare was told nothing there, and starts them as itself."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as words:
            told = msgspec.json.decode(words.read().rstrip(b"\0").rpartition(b"\0")[2], type=SlotSettings)
    except (OSError, msgspec.MsgspecError):
        return not settings.isolation.is_set
    return (told.isolation, told.variables) == (settings.isolation, settings.variables)


async def connect_slot(link: SlotLink, work_folder: WorkFolder) -> bool:
    """Connect to a slot process if there is one."""
    connection = socket.socket(socket.AF_UNIX)
    try:
        with _short(work_folder) as short:
            connection.connect(f"{short.path}/{work_folder.socket_of(link.number).name}")
    except OSError:
        connection.close()
        return False
    connection.setblocking(False)
    await asyncio.get_running_loop().create_unix_connection(lambda: link, sock=connection)
    return True


async def end_slot(link: SlotLink, patience_s: float) -> None:
    """Stop a slot and everything below it, and wait until it is gone. One that is still loading would hear of it only
    when it has loaded, and has nothing below it."""
    if link.process is not None and not link.holds and not link.hello_received.done():
        link.process.kill()
    link.stop()
    try:
        await asyncio.wait_for(link.closed.wait(), patience_s if link.alive else 0)
    except TimeoutError:
        if link.pid:
            kill_tree(link.pid)
    if link.process is not None:
        await asyncio.to_thread(_bury, link.process)


def _bury(process: "subprocess.Popen[bytes]") -> None:
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        kill_tree(process.pid)
        process.wait()


def kill_strays(slots: set[int]) -> None:
    """Kill what a dead slot left behind: its processes are children of this one now, the next reaper above. A slot has
    a session of its own, which nothing below it can leave for ours. Children in our session are commands that this
    process runs itself (it removes a container, fetches an image, transfers a file): they are left alone, and their
    exit codes to whoever waits for them, since one that was killed would look as if it had done its work."""
    for _ in range(200):
        strays = [pid for pid in children(os.getpid()) if pid not in slots and not _is_own_command(pid)]
        if not strays:
            return
        for pid in strays:
            kill_tree(pid)
            try:
                os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                continue
        time.sleep(0.001)


def kill_own_commands() -> None:
    """Kill the commands that this process runs itself, with all below them; whoever waits for one sees it."""
    for pid in children(os.getpid()):
        if _is_own_command(pid):
            kill_tree(pid)


def _is_own_command(pid: int) -> bool:
    try:
        return os.getsid(pid) == os.getsid(0)
    except ProcessLookupError:
        return False


class _short:
    """A short path for the sockets: paths of Unix sockets are limited, those of work folders are not."""

    def __init__(self, work_folder: WorkFolder) -> None:
        self._folder = os.open(work_folder.slots, os.O_RDONLY | os.O_CLOEXEC)
        proc = f"/proc/self/fd/{self._folder}"
        self.path = proc if os.path.exists(proc) else str(work_folder.slots)

    def __enter__(self) -> "_short":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._folder)
