"""The images of jobs: each is looked for when a job needs it, and fetched once for all jobs and pilots of the machine.

Jobs of one pilot that want the same image wait for one look. Pilots of one machine take turns under a lock, and whoever
waited looks again first: the image is there by then, or the failure of the one before is noted, and holds for all that
waited. So fifty jobs with a name that does not exist ask the registry once."""

import asyncio
import hashlib
import os
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from mendflow.core.model.containers import JobContainer, is_of_machine, is_sif_file, mount_of, reference_of
from mendflow.core.model.faults import AttemptStage, Category, Fault
from mendflow.core.model.values import Value
from mendflow.lazy import lazy_pattern
from mendflow.pilot.containers.command_lines import APPTAINER, image_line, pull_line
from mendflow.pilot.containers.records import make_notes_folder
from mendflow.pilot.containers.runtime import ContainerOptions, ContainerRuntime, notes_folder
from mendflow.pilot.containers.start import ContainerRefused, ContainerStart
from mendflow.pilot.containers.start_faults import NOT_STARTED, machine_fault, machine_trouble, telling_line
from mendflow.pilot.files.locks import hold

FRESH_S: Final = 2.0
"""So long an image that was found counts as there: a tag may be given to another image at any time."""

FAILED_S: Final = 30.0
PART_END: Final = ".part"
LOCK_LOOK_S: Final = 0.1
KILLED_TRIES: Final = 3
PRINTED_CHARS_MAX: Final = 2_000
_PIECE_BYTES: Final = 1 << 20
_NO_SUCH_IMAGE: Final = lazy_pattern(
    r"manifest unknown|no such image|name unknown|name invalid|invalid reference|did not resolve to an alias"
    r"|no unqualified-search|invalid tag|unsupported scheme|requested image"
)
"""What is said of names of images alone."""

_REFUSED: Final = lazy_pattern(
    r"not found|does not exist|denied|unauthorized|authentication required|no such file",
)
"""What a registry says of an image, and a machine of its own parts."""


MOUNT_SYNTAX: Final = frozenset(',:"\n\0')
"""Characters that runtimes read as parts of a mount, not of a path."""


class FoundImage(NamedTuple):
    """What is run, and the digest of its content."""

    image: str
    digest: str


class FailedPull(msgspec.Struct, frozen=True):
    """Why an image could not be fetched; `missing`: there is none of that name, so trying again is futile; `printed` is
    what the program said of its machine, if that is the reason."""

    said: str
    missing: bool
    at: float
    printed: str = ""


class ImageStore:
    """The images of this machine, as one pilot sees them. `own_accounts`: its jobs have other accounts than itself.
    `refusal` tells why no container starts here, if that was seen a moment ago."""

    def __init__(
        self,
        runtime: ContainerRuntime | None,
        options: ContainerOptions,
        cache: Path,
        *,
        own_accounts: bool = False,
        refusal: Callable[[], Fault | None] = lambda: None,
    ) -> None:
        self._runtime = runtime
        self._options = options
        self._own_accounts = own_accounts
        self._refusal = refusal
        self._cache = cache
        self.records = str(notes_folder(cache))
        self._known: dict[str, tuple[float, FoundImage]] = {}
        self._failed: dict[str, FailedPull] = {}
        self._looks: dict[str, asyncio.Task[FoundImage]] = {}
        self._running: set[subprocess.Popen[bytes]] = set()
        self._file_digests: dict[tuple[str, int, int], str] = {}
        self._stopped = False

    def known(self, container: JobContainer) -> ContainerStart | None:
        """What starts a container whose image was just found; None if it must be looked for. Raises
        ContainerRefused."""
        self._check(container)
        at, found = self._known.get(container.image, (0.0, None))
        return self._start(container, found) if found is not None and time.monotonic() - at < FRESH_S else None

    async def find(self, container: JobContainer) -> ContainerStart:
        """What starts such a container; its image is fetched first, unless it is here. Raises ContainerRefused."""
        self._check(container)
        image = container.image
        look = self._looks.get(image)
        if look is None:
            look = self._looks[image] = asyncio.get_running_loop().create_task(self._look(image))
            look.add_done_callback(lambda _: self._looks.pop(image, None))
        found = await asyncio.shield(look)
        self._known[image] = (time.monotonic(), found)
        return self._start(container, found)

    def stop(self) -> None:
        """Fetch nothing more: the pilot leaves."""
        self._stopped = True
        for process in list(self._running):
            process.kill()

    def _start(self, container: JobContainer, found: FoundImage) -> ContainerStart:
        assert self._runtime is not None
        mounts = []
        for text in container.mounts:
            mount = mount_of(text)
            mounts.append((self._allowed(mount.source), mount.target, mount.read_only))
        return ContainerStart(
            kind=self._runtime.kind,
            command=self._runtime.command,
            image=found.image,
            digest=found.digest,
            records=self.records,
            extra=self._runtime.extra,
            mounts=tuple(mounts),
            options=container.options,
            network=container.network,
        )

    def _check(self, container: JobContainer) -> None:
        """Refuse what this pilot does not have, or does not allow."""
        if self._runtime is None:
            text = f"this pilot has nothing that runs containers, and the job wants {container.image}"
            raise ContainerRefused(_fault(NOT_STARTED, Category.RESOURCE, text))
        if refused := self._refusal():
            raise ContainerRefused(refused)
        if flaw := make_notes_folder(self.records):
            raise ContainerRefused(_fault(NOT_STARTED, Category.RESOURCE, flaw))
        if flag := self._options.refused_flag(container.options):
            text = f"its container asks for the option {flag}, which this pilot does not allow: --container-flags does"
            raise ContainerRefused(_fault("containerRefused", Category.INPUT, text))
        for text in container.mounts:
            self._allowed(mount_of(text).source)

    def _allowed(self, source: str) -> str:
        """The path that a mount leads to, without links; what is started gets the path that was looked at. Raises
        ContainerRefused."""
        path, said = os.path.realpath(source), ""
        if any(each in path for each in MOUNT_SYNTAX):
            said = f"its container mounts {path!r}, whose name would be read as an option of the mount: rename it"
        elif not self._options.allows_mount(path):
            said = f"its container mounts {path}, which this pilot does not allow: --container-mounts does"
        elif self._options.may_be_swapped(path, own_accounts=self._own_accounts):
            said = f"its container mounts {path}, and a job could put a link in place of a folder on the way there: let"
            said += " --container-mounts name this path itself, or the folders above it be writable to root alone"
        elif not os.access(path, os.R_OK):
            said = f"its container mounts {path}, which is not on {socket.gethostname()}, or cannot be read there"
        if said:
            raise ContainerRefused(_fault("containerRefused", Category.INPUT, said))
        return path

    async def _look(self, image: str) -> FoundImage:
        assert self._runtime is not None
        if found := await self._there(image):
            return found
        if (failed := self._failed.get(image)) is not None and time.time() - failed.at < FAILED_S:
            raise self._cannot_be_had(image, failed)
        if is_sif_file(image):
            raise self._cannot_be_had(image, FailedPull(f"there is no file {image}", True, 0.0))
        since = time.time()
        lock = await self._lock(image)
        try:
            if found := await self._there(image):
                return found
            failed = self._failure_since(image, since) or await self._pull(image)
            if failed is not None:
                self._failed[image] = failed
                raise self._cannot_be_had(image, failed)
        finally:
            os.close(lock)
        found = await self._there(image)
        if found is None:
            raise self._cannot_be_had(image, FailedPull("it was fetched, and is not there", False, 0.0))
        return found

    async def _there(self, image: str) -> FoundImage | None:
        """The image, if this machine has it."""
        assert self._runtime is not None
        kind, command = self._runtime.kind, self._runtime.command
        if kind == APPTAINER:
            path = image if is_sif_file(image) else str(self._file_of(image))
            try:
                status = os.stat(path)
            except OSError:
                return None
            key = (path, status.st_size, status.st_mtime_ns)
            if key not in self._file_digests:
                self._file_digests[key] = await asyncio.to_thread(_digest_of, path)
            return FoundImage(path, f"sha256:{self._file_digests[key]}")
        code, said = await self._run(image_line(kind, command, image))
        identity = said.strip()
        if code != 0 or not identity:
            return None
        identity = identity if identity.startswith("sha256:") else f"sha256:{identity}"
        return FoundImage(identity.removeprefix("sha256:"), identity)

    async def _pull(self, image: str) -> FailedPull | None:
        """Fetch it; why that failed, if it did."""
        assert self._runtime is not None
        kind, command, file = self._runtime.kind, self._runtime.command, self._file_of(image)
        part = file.with_suffix(f".{socket.gethostname()}.{os.getpid()}{PART_END}")
        if kind == APPTAINER:
            file.parent.mkdir(parents=True, exist_ok=True)
        code, said = await self._run(pull_line(kind, command, image, str(part)))
        if code == 0:
            if kind == APPTAINER:
                os.replace(part, file)
            return None
        part.unlink(missing_ok=True)
        lower = said.lower()
        is_missing = _NO_SUCH_IMAGE.search(lower) is not None
        failed = FailedPull(
            telling_line(said) or f"exit code {code}",
            is_missing or _REFUSED.search(lower) is not None,
            time.time(),
            said[-PRINTED_CHARS_MAX:] if not is_missing and machine_trouble(said, image) is not None else "",
        )
        note = self._note_of(image)
        note.with_suffix(".new").write_bytes(msgspec.json.encode(failed))
        os.replace(note.with_suffix(".new"), note)
        return failed

    async def _run(self, words: Sequence[str]) -> tuple[int, str]:
        """Run a command; its exit code and all that it printed. One that somebody killed is run again."""
        code, printed = 125, ""
        for _ in range(KILLED_TRIES):
            code, printed = await asyncio.to_thread(self._run_once, words)
            if code >= 0 or self._stopped:
                break
        return code, printed

    def _run_once(self, words: Sequence[str]) -> tuple[int, str]:
        try:
            process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            )
        except OSError as error:
            return 125, str(error)
        self._running.add(process)
        if self._stopped:
            process.kill()
        printed, _ = process.communicate()
        self._running.discard(process)
        return process.returncode, printed.decode(errors="replace")

    async def _lock(self, image: str) -> int:
        path = self._note_of(image).with_suffix(".lock")
        path.parent.mkdir(parents=True, exist_ok=True)
        while (lock := hold(path)) is None:
            await asyncio.sleep(LOCK_LOOK_S)
        return lock

    def _failure_since(self, image: str, since: float) -> FailedPull | None:
        """The failure of another pilot, if it came while this one waited or a moment before."""
        try:
            failed = msgspec.json.decode(self._note_of(image).read_bytes(), type=FailedPull)
        except (OSError, msgspec.MsgspecError):
            return None
        return failed if failed.at >= since - FAILED_S else None

    def _file_of(self, image: str) -> Path:
        return self._cache / "images" / f"{_short_digest(image)}.sif"

    def _note_of(self, image: str) -> Path:
        return _pulls_folder(self._cache) / f"{_short_digest(image)}.json"

    def _cannot_be_had(self, image: str, failed: FailedPull) -> ContainerRefused:
        assert self._runtime is not None
        kind, host = self._runtime.kind, socket.gethostname()
        if failed.printed and (trouble := machine_trouble(failed.printed, image)) is not None:
            command, stage = self._runtime.command, AttemptStage.STAGE_IN
            return ContainerRefused(machine_fault(kind, command, failed.printed, trouble, stage=stage))
        data: dict[str, Value] = {"image": image, "runtime": kind, "reason": failed.said}
        if is_of_machine(image):
            text = f"the image {image} is not on {host}: {_of_machine_advice(kind, image)}"
            return ContainerRefused(_fault("imageMissing", Category.RESOURCE, text, {**data, "lasting": True}))
        text = f"the image {image} cannot be had on {host} by {kind}: {failed.said}"
        if failed.missing:
            return ContainerRefused(_fault("imageMissing", Category.INPUT, text, data))
        return ContainerRefused(_fault("imageUnavailable", Category.RESOURCE, text, data))


def _of_machine_advice(kind: str, image: str) -> str:
    """What to do about an image that only the machine itself can have."""
    if is_sif_file(image):
        return "there is no file of that name, or the pilot's user may not read it; put it there, or correct the name"
    name = reference_of(image)
    if kind == APPTAINER:
        other = f"/images/{name.rpartition('/')[2].partition(':')[0]}.sif"
        return f"localhost/ names images of podman, and the pilot has apptainer; name a file, as in {other}"
    return (
        f"names with localhost/ are those of the machine's own images, and no registry has them. Build it there as the"
        f" pilot's user, with {kind} build -t {name} FOLDER, or load it with {kind} load -i FILE; {kind} images lists"
        " what is there"
    )


def remove_parts(cache: Path) -> None:
    """Remove what pilots of this host left of images of Apptainer when they were killed: parts that nobody fetches."""
    for part in (cache / "images").glob(f"*.{socket.gethostname()}.*{PART_END}"):
        try:
            lock = hold(_pulls_folder(cache) / f"{part.name.partition('.')[0]}.lock")
            if lock is not None:
                part.unlink(missing_ok=True)
                os.close(lock)
        except OSError:
            continue  # of another user


def _pulls_folder(cache: Path) -> Path:
    return cache / "pulls" / socket.gethostname()


def _fault(name: str, category: Category, text: str, data: Value = None) -> Fault:
    return Fault(name=name, category=category, message=text, stage=AttemptStage.STAGE_IN, data=data)


def _short_digest(image: str) -> str:
    return hashlib.sha256(image.encode()).hexdigest()[:32]


def _digest_of(path: str) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while piece := file.read(_PIECE_BYTES):
            digest.update(piece)
    return digest.hexdigest()
