"""Messages between agent, slot and worker: length-prefixed MessagePack frames.

A process does not decode what it only passes on (`Raw`): a slot does not decode a call's arguments, nor the agent an
outcome, so their cost per job does not depend on its size."""

import struct
from collections.abc import Iterator

import msgspec

from mendflow.core.model.data import CacheUpdate, Publication
from mendflow.core.model.ids import JobId
from mendflow.core.model.jobs import Limits, Measurements, Outcome
from mendflow.core.model.sync import Capacity, LogPart, ResourcesInUse
from mendflow.core.model.text_masks import TextMask
from mendflow.core.model.values import Value
from mendflow.pilot.containers.start import ContainerStart

FRAME_BYTES_MAX = 1 << 30
_LENGTH = struct.Struct(">I")

AttemptKey = tuple[str, int]
"""A job's id and the fence of this attempt."""


class FunctionCall(msgspec.Struct, frozen=True, array_like=True):
    """One function call, as the worker gets it. `folder` is where the module is loaded from, `sha256` what its source
    must have, `modules` what those beside it should have (see FunctionRef; None: nobody knows); `cwd` is empty when
    the attempt has no folder. `beside` is the folder of the flow, if the module is loaded from another. `python`
    is the interpreter that runs it; empty: the worker's own. `secrets` are the variables of `env` that hold
    secrets, `hidden` the values of all its secrets."""

    job: str
    fence: int
    case: str
    item: str
    module: str
    name: str
    folder: str
    sha256: str
    args: list[Value]
    kwargs: dict[str, Value]
    env: dict[str, str]
    cwd: str
    attempt_folder: str
    limits: Limits
    number: int
    modules: tuple[str, ...] | None = None
    beside: str = ""
    python: str = ""
    secrets: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()

    @property
    def names(self) -> dict[str, str]:
        """What tells the function who it is."""
        return {
            "MENDFLOW_JOB": self.job,
            "MENDFLOW_CASE": self.case,
            "MENDFLOW_ITEM": self.item,
            "MENDFLOW_ATTEMPT": str(self.number),
            "MENDFLOW_FENCE": str(self.fence),
        }


class AttemptSecrets(msgspec.Struct, frozen=True, array_like=True):
    """The secrets of an attempt: environment variables and files of its folder, each with its value."""

    variables: dict[str, str] = {}
    files: dict[str, str] = {}

    def __bool__(self) -> bool:
        return bool(self.variables or self.files)

    def __repr__(self) -> str:
        return f"AttemptSecrets({sorted((*self.variables, *self.files))})"

    def mask(self) -> TextMask:
        return TextMask.of_secrets((*self.variables.values(), *self.files.values()))


class SlotWork(msgspec.Struct, frozen=True, array_like=True):
    """One attempt, as a slot gets it; `number` says which try of the job it is. A shell command, or an encoded
    `FunctionCall` with what the slot must know of it: `module` and `code` tell whether a warm worker may serve it;
    `devices` are the GPUs that it was given. `publish` and `staging_measures` only come back when it is done. `shell`,
    `unstaged` and `file_lists` are as in JobSpec; `inputs` are the paths of its inputs, where it must be known what is
    none of its outputs. `linked`: its folder has links into the cache, which the agent looks at when it has ended.
    `container` is what its command runs in. `secrets` are in `env`, or in its folder, and are masked in what it
    prints. `owner` is whose job it is, `values` are the digests of what a call reads of the cache."""

    job: JobId
    fence: int
    case: str
    item: str
    command: str
    call: msgspec.Raw
    module: str
    code: str
    env: dict[str, str]
    files: dict[str, str]
    own_folder: bool
    wall_ms: int
    memory_bytes: int
    limits: Limits
    devices: str = ""
    publish: dict[str, Publication] = {}
    staging_measures: Measurements = Measurements()
    number: int = 0
    shell: str = ""
    unstaged: tuple[str, ...] = ()
    file_lists: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    linked: bool = False
    container: ContainerStart | None = None
    secrets: AttemptSecrets = AttemptSecrets()
    owner: str = ""
    values: tuple[str, ...] = ()

    @property
    def key(self) -> AttemptKey:
        return (self.job, self.fence)


class FileList(msgspec.Struct, frozen=True, array_like=True):
    """Files that one output means: their paths in the job's folder, in order, all below the folder `base`."""

    base: str
    paths: list[str]


class FinishedAttempt(msgspec.Struct, frozen=True, array_like=True):
    """An attempt that ended. `files`, `file_lists` and `spills` are still to be stored, from the attempt's folder,
    before anybody is told: an output's name to its path, or to several, and paths of spilled values. Those that
    `publish` names go to storage elements instead. `log`: its log is longer than what the outcome has of it, and is to
    be stored too. `contents`: paths of the files of the outcome's `contents`, in their order. `folder`: there is a
    folder to be removed when the server has judged the attempt; one that is `kept` stays for a while longer. `stored`:
    all of this was stored, and what the outcome says of it was looked at."""

    job: JobId
    fence: int
    outcome: msgspec.Raw
    ran_us: int
    files: dict[str, str] = {}
    spills: list[str] = []
    folder: bool = False
    publish: dict[str, Publication] = {}
    staging_measures: Measurements = Measurements()
    file_lists: dict[str, FileList] = {}
    log: bool = False
    kept: bool = False
    contents: list[str] = []
    stored: bool = False

    @property
    def key(self) -> AttemptKey:
        return (self.job, self.fence)


class Heartbeat(msgspec.Struct, frozen=True, array_like=True):
    """The state of an attempt in a slot. It has the fields, and the encoding, of `AttemptStatus`."""

    job: JobId
    fence: int
    state: str
    measures: Measurements
    log_tail: str = ""
    values: dict[str, Value] = {}


class ToSlot(msgspec.Struct, frozen=True, array_like=True):
    """`acks`: attempts that the server has acknowledged; the slot forgets their results. `controls`: triples of job,
    fence and one of suspend, resume, cancel, kill. `recall` takes back what has not started, `stop` ends the slot."""

    run: list[SlotWork] = []
    acks: list[tuple[str, int]] = []
    controls: list[tuple[str, int, str]] = []
    recall: bool = False
    stop: bool = False


class FromSlot(msgspec.Struct, frozen=True, array_like=True):
    """`hello` is sent once to each agent that connects, with everything that the slot holds and the `devices` of its
    running attempt."""

    done: list[FinishedAttempt] = []
    heartbeats: list[Heartbeat] = []
    returned: list[tuple[str, int]] = []
    hello: bool = False
    pid: int = 0
    devices: str = ""


class RawCallBatch(msgspec.Struct, frozen=True, array_like=True):
    """Numbered calls, in the order in which they run. Written by the slot, with calls still encoded."""

    first: int
    calls: list[msgspec.Raw]


class CallBatch(msgspec.Struct, frozen=True, array_like=True):
    """The same message as the worker reads it."""

    first: int
    calls: list[FunctionCall]


class CallResult(msgspec.Struct, frozen=True, array_like=True):
    """One call has ended, and all its processes are gone. Written by the worker. `report` holds its reported values.
    For `log`, `kept` and `contents` see `FinishedAttempt`."""

    number: int
    ran_us: int
    outcome: Outcome | None  # None: the call was not started, because the slot took it back
    spills: list[str] = []
    report: bytes = b""
    log: bool = False
    kept: bool = False
    contents: list[str] = []


class RawCallResult(msgspec.Struct, frozen=True, array_like=True):
    """The same message as the slot reads it."""

    number: int
    ran_us: int
    outcome: msgspec.Raw
    spills: list[str] = []
    report: bytes = b""
    log: bool = False
    kept: bool = False
    contents: list[str] = []


class RawReport(msgspec.Struct, frozen=True, array_like=True):
    """A `Report` whose outcome is already encoded."""

    job: JobId
    fence: int
    outcome: msgspec.Raw


class RawRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A `SyncRequest` whose reports are already encoded; it has the fields that a pilot sets."""

    pilot: str
    serial: int
    host: str
    site: str
    capacity: Capacity
    want: int
    ttl_ms: int
    running: list[Heartbeat]
    reports: list[RawReport]
    leaving: bool
    wait_ms: int
    heard: int
    version: int
    taken: ResourcesInUse | None
    knows: int
    sent_at: int
    storage: str = ""
    submission: str = ""
    submission_secret: str = ""
    unfit: str = ""
    paused: str = ""
    leaves: str = ""
    cache: CacheUpdate | None = None
    cache_version: int = 0
    neighbours: int = 0
    logs: list[LogPart] = []


NIL = msgspec.Raw(b"\xc0")
"""None, encoded: no call, or no outcome."""


def frame(encoded: bytes) -> bytes:
    return _LENGTH.pack(len(encoded)) + encoded


class FrameReader:
    """Splits a stream of bytes into frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        buffer = self._buffer
        buffer += data
        start, size = 0, len(buffer)
        while size - start >= 4:
            (length,) = _LENGTH.unpack_from(buffer, start)
            assert length <= FRAME_BYTES_MAX, "the length of a frame is invalid: the stream is corrupt"
            if size - start - 4 < length:
                break
            yield bytes(buffer[start + 4 : start + 4 + length])
            start += 4 + length
        del buffer[:start]
