"""The pilot's work folder: who owns it, and what stands where.

agent.lock     held while an agent lives          lease      when jobs must stop, see slot/lease.py
guard.lock     held while a guard lives
pilot.json     the pilot's id, kept over restarts  slots/     a socket for each slot
attempts/      a folder for each attempt           results/   results that no agent has taken yet
cache/, code/  stored files by their digest          servers.json  the servers that it was told of
cache.guests/  files that go past the cache        cache.promised  how much is on its way into it
cache.stored/  links to files that a server stores on this disk, while calls read them
cache.uses     how often files were used           neighbours.json  whose caches it was told of
containers     where it is noted which containers run, and what removes them"""

import os
import re
import secrets
import socket
import stat
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from mendflow.core.model.errors import RequestError
from mendflow.pilot.containers.start import ContainerNotes
from mendflow.pilot.files.locks import hold, holder
from mendflow.pilot.isolation.confinement import CONFINED_ENDS
from mendflow.pilot.slot.messages import FinishedAttempt

BESIDE = (
    ".log",
    ".log.gz",
    ".output",
    ".report",
    ".script",
    ".kept",
    ".started",
    ".usage",
    ".variables",
    *CONFINED_ENDS,
)
"""Files of the pilot beside an attempt's folder: the log and its compressed form, the outputs, the reports, a command
that is no argument of its shell, a mark that the folder is kept because the attempt has failed, and of a container the
process that it started with, what its processes used, and the variables that it was to set; and folders of an attempt
that does not run as the pilot."""

FOLDER_MODE = 0o700
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
CONTAINER_NOTES = "containers"


class WorkFolderTaken(RequestError):
    code = "home-taken"
    status = 409


class PilotIdentity(msgspec.Struct, frozen=True):
    """`starts` counts the agents of this folder; request numbers of a later agent are always larger."""

    pilot: str
    host: str
    starts: int


def attempt_name(job: str, fence: int) -> str:
    """The folder name of an attempt: the job's id without the slash, then the fence."""
    return f"{re.sub('[^A-Za-z0-9._-]', '~', job)}.{fence}"


def new_pilot_id(host: str) -> str:
    """A name that no other pilot has, which says where it runs."""
    return f"{re.sub(r'[^A-Za-z0-9_.-]+', '-', host)}-{secrets.token_hex(4)}"


class WorkFolder:
    """Paths below one work folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self.attempts = self.folder / "attempts"
        self.results = self.folder / "results"
        self.slots = self.folder / "slots"
        self.cache = self.folder / "cache"
        self.stored = self.folder / "cache.stored"
        self.code = self.folder / "code"
        self.lease = self.folder / "lease"
        self.servers = self.folder / "servers.json"
        self.agent_lock = self.folder / "agent.lock"
        self.guard_lock = self.folder / "guard.lock"

    def make(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for part in (self.attempts, self.results, self.slots, self.cache, self.code):
            part.mkdir(exist_ok=True, mode=0o700)

    def open_ways(self) -> None:
        """Let other accounts pass through to the folders that they are given, and list or read nothing on the way."""
        for name in os.listdir(self.folder):
            path = self.folder / name
            if path.is_file() and not path.is_symlink():
                path.chmod(0o600)
        for part in (self.folder, self.attempts, self.code):
            part.chmod(0o711)

    def lock(self) -> int:
        """Lock the folder until the returned descriptor is closed or this process dies."""
        descriptor = hold(self.agent_lock)
        if descriptor is None:
            other = holder(self.agent_lock) or "unknown"
            raise WorkFolderTaken(
                f"another pilot (process {other}) works in {self.folder}: stop it, or give this one a --work folder of"
                " its own"
            )
        return descriptor

    def identify(self, called: str = "") -> PilotIdentity:
        """The pilot's identity: the stored one if it is of this host, otherwise a new one, named after what somebody
        has `called` this machine, or after its host name."""
        path = self.folder / "pilot.json"
        host = socket.gethostname()
        try:
            last = msgspec.json.decode(path.read_bytes(), type=PilotIdentity)
        except (OSError, msgspec.MsgspecError):
            last = None
        if last is None or last.host != host:
            last = PilotIdentity(pilot=new_pilot_id(called or host), host=host, starts=0)
        identity = PilotIdentity(pilot=last.pilot, host=host, starts=last.starts + 1)
        content = msgspec.json.encode(identity)
        try:
            write_atomically(path, content)
        except OSError:
            overwrite(path, content)  # the disk is full
        return identity

    def name_container_notes(self, notes: ContainerNotes | None) -> None:
        """Say for the guard where it is noted which containers run, and what removes them; None: there are none."""
        path = self.folder / CONTAINER_NOTES
        if notes is None:
            path.unlink(missing_ok=True)
            return
        content = msgspec.json.encode(notes)
        if not path.exists() or path.read_bytes() != content:  # a pilot comes back on a full disk, too
            write_atomically(path, content)

    def attempt(self, job: str, fence: int) -> str:
        return f"{self.attempts}/{attempt_name(job, fence)}"

    def result(self, job: str, fence: int) -> Path:
        return self.results / attempt_name(job, fence)

    def socket_of(self, slot: int) -> Path:
        return self.slots / f"{slot}.sock"

    @property
    def has_results(self) -> bool:
        try:
            return any(not name.startswith(".") for name in os.listdir(self.results))
        except OSError:
            return False

    def unjudged_results(self) -> list[FinishedAttempt]:
        """Results that slots wrote and that no server has acknowledged; an unreadable one was never complete."""
        found = []
        for path in sorted(self.results.iterdir()):
            if path.name.startswith("."):
                continue  # being written just now, or incomplete
            try:
                found.append(msgspec.msgpack.decode(path.read_bytes(), type=FinishedAttempt))
            except (OSError, msgspec.MsgspecError):
                path.unlink(missing_ok=True)
        return found


def write_atomically(path: Path, content: bytes) -> None:
    """Write so that a reader sees either all of the new content or the old."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.write_bytes(content)
    temporary.replace(path)


def overwrite(path: Path, content: bytes) -> None:
    """Overwrite a few bytes in place, which works on a full disk; pads with spaces if the old text was longer."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.pwrite(descriptor, content.ljust(os.fstat(descriptor).st_size), 0)
    finally:
        os.close(descriptor)


def reuse_folder(spare: str, folder: str) -> bool:
    """Rename the folder of an ended attempt for the next one, if it is empty and unchanged. That costs a fraction of
    removing one folder and creating another."""
    try:
        if os.listdir(spare) or stat.S_IMODE(os.lstat(spare).st_mode) != FOLDER_MODE:
            return False
        os.rename(spare, folder)
    except OSError:
        return False
    return True


def remove_attempt(folder: str) -> None:
    """Remove an attempt's folder and the pilot's files beside it. (They are beside it so that the job finds its folder
    empty.)"""
    remove_beside(folder)
    remove_tree(folder)


def remove_beside(folder: str, suffixes: Iterable[str] = BESIDE) -> None:
    for suffix in suffixes:
        try:
            os.unlink(folder + suffix)
        except FileNotFoundError:
            continue
        except OSError:
            remove_tree(folder + suffix)  # the job made a folder of this name


def remove_tree(folder: str) -> None:
    """Remove a folder; fast if it has few entries. What cannot be removed stays as litter. Folders may be nested deeper
    than the longest path, so subfolders are moved up before they are removed.

    Another job of the same account may be in one of the folders, and put links in place of what is there. So each
    folder is opened without following links, and closed to everybody else before anything in it is looked at."""
    try:
        os.rmdir(folder)
        return
    except OSError:
        pass
    if os.path.islink(folder):
        _attempt(os.unlink, folder)  # do not follow it: the target is not ours
        return
    top = _opened(folder)
    if top is not None:
        try:
            _empty(top)
        finally:
            os.close(top)
    _attempt(os.rmdir, folder)


def _empty(top: int) -> None:
    moved = 0
    stuck: set[str] = set()
    while inner := [name for name in _not_empty(top) if name not in stuck]:
        for name in inner:
            if (folder := _opened(name, top)) is not None:
                for deeper in _not_empty(folder):
                    moved += 1
                    up = f".mendflow.tidy.{os.getpid()}.{moved}"
                    _attempt(os.rename, deeper, up, src_dir_fd=folder, dst_dir_fd=top)
                os.close(folder)
            if not _attempt(os.rmdir, name, dir_fd=top):
                stuck.add(name)


def _not_empty(folder: int) -> list[str]:
    """Remove the entries of an open folder; returns the names of the subfolders that are not empty."""
    try:
        with os.scandir(folder) as found:
            entries = list(found)
    except OSError:
        return []
    left = []
    for entry in entries:
        if not entry.is_dir(follow_symlinks=False):
            _attempt(os.unlink, entry.name, dir_fd=folder)
        elif not _attempt(os.rmdir, entry.name, dir_fd=folder):
            if (inner := _opened(entry.name, folder)) is not None:  # it is ours now, and can be moved
                os.close(inner)
            left.append(entry.name)
    return left


def _opened(name: str, parent: int | None = None) -> int | None:
    """A folder of a job, open, and from now on only ours; None if it cannot be opened, or is none."""
    try:
        found = os.open(name, _FOLDER, dir_fd=parent)
    except PermissionError:  # its job has taken its own rights away; root needs none
        if not _attempt(os.chmod, name, FOLDER_MODE, dir_fd=parent):
            return None
        try:
            found = os.open(name, _FOLDER, dir_fd=parent)
        except OSError:
            return None
    except OSError:
        return None
    status = os.fstat(found)
    if status.st_uid != os.geteuid():
        _attempt(os.fchown, found, os.geteuid(), os.getegid())
    if stat.S_IMODE(status.st_mode) != FOLDER_MODE:
        _attempt(os.fchmod, found, FOLDER_MODE)
    return found


def _attempt(action: Callable[..., None], *words: str | int, **more: int | None) -> bool:
    try:
        action(*words, **more)
    except OSError:
        return False
    return True
