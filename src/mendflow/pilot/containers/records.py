"""Notes of the containers that run on this machine, so that none is left over.

A slot writes a note before it starts a container and removes it when the container is gone. A note whose slot is dead
is that of a container that may still run, or lie there stopped: whoever finds it (the agent whose slot died, the guard,
the next pilot of the same user on this machine, whichever folder it works in) removes the container and then the note.
Notes stand in one folder for each host, since a home folder may be shared by many.

Whoever could write a note could make a pilot remove what it should not, so the folder must be the user's own and closed
to others, and a note does not say what is to be executed: a pilot removes what its own runtime has started."""

import hashlib
import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from mendflow.pilot.containers.command_lines import remove_line
from mendflow.pilot.containers.start import ContainerNotes, ContainerStart

REMOVE_S: Final = 30.0
FOLDER_MODE: Final = 0o700
NOTE_END: Final = ".json"
BOOT_ID: Final = "/proc/sys/kernel/random/boot_id"


class ContainerNote(msgspec.Struct, frozen=True, kw_only=True):
    """A container that was started, a digest of the runtime's command, and the slot that watches it: its pid, when that
    process started, and since when the machine is up."""

    name: str
    runtime: str
    pilot: str
    job: str
    slot: int
    started: str
    boot: str


def container_name(pilot: str, job: str, fence: int) -> str:
    """The name of an attempt's container: the same job and fence of another pilot have another."""
    digest = hashlib.blake2b(f"{pilot}\n{job}\n{fence}".encode(), digest_size=12).hexdigest()
    return f"mendflow-{digest}"


def write_note(start: ContainerStart, name: str, *, pilot: str, job: str) -> None:
    """Note that this process is about to start a container. The pilot has made the folder."""
    own = os.getpid()
    note = ContainerNote(
        name=name,
        runtime=_digest_of(start.kind, start.command),
        pilot=pilot,
        job=job,
        slot=own,
        started=_start_of(own),
        boot=_boot(),
    )
    path = _path(start.records, name)
    with open(f"{path}.new", "wb") as file:
        file.write(msgspec.json.encode(note))
    os.replace(f"{path}.new", path)


def make_notes_folder(folder: str) -> str:
    """Make the folder for notes; returns why it cannot be used, or nothing."""
    try:
        os.makedirs(folder, FOLDER_MODE, exist_ok=True)
    except OSError as error:
        return f"the folder {folder} cannot be made ({error.strerror}): name another with --container-cache"
    return _flaw_of(folder)


def _flaw_of(folder: str) -> str:
    """Why notes in this folder are not trusted; empty if they are, or there are none."""
    try:
        status = os.lstat(folder)
    except OSError:
        return ""
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        return f"{folder} is no folder of the pilot's own user: remove it, or name another with --container-cache"
    if stat.S_IMODE(status.st_mode) & ~FOLDER_MODE:
        return f"the folder {folder} is open to others: check what is in it and say chmod 700 {folder}"
    return ""


def forget_note(records: str, name: str) -> None:
    try:
        os.unlink(_path(records, name))
    except OSError:
        pass


def remove_container(start: ContainerStart, name: str) -> bool:
    """End and remove a container of this slot, and its note; False if that failed, and the note stays."""
    return _remove(start.kind, start.command, name, start.records)


def remove_leftovers(notes: ContainerNotes) -> list[str]:
    """Remove the containers of slots that are dead, if they are of this pilot's runtime; returns the names of those
    that could not be removed."""
    own = _digest_of(notes.kind, notes.command)
    return [
        note.name
        for note in _notes(notes.folder)
        if note.runtime == own and _is_dead(note) and not _remove(notes.kind, notes.command, note.name, notes.folder)
    ]


def _remove(kind: str, command: tuple[str, ...], name: str, records: str) -> bool:
    words = remove_line(kind, command, name)
    try:
        done = (
            not words
            or subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=REMOVE_S).returncode == 0
        )
    except (OSError, subprocess.TimeoutExpired):
        done = False
    if done:
        forget_note(records, name)
    return done


def _digest_of(kind: str, command: tuple[str, ...]) -> str:
    return hashlib.blake2b("\0".join((kind, *command)).encode(errors="replace"), digest_size=12).hexdigest()


def _notes(records: str) -> Iterator[ContainerNote]:
    if _flaw_of(records):
        return
    try:
        names = os.listdir(records)
    except OSError:
        return
    for name in names:
        if name.endswith(NOTE_END):
            try:
                yield msgspec.json.decode(Path(records, name).read_bytes(), type=ContainerNote)
            except (OSError, msgspec.MsgspecError):
                continue


def _is_dead(note: ContainerNote) -> bool:
    return note.boot != _boot() or _start_of(note.slot) != note.started


def _start_of(pid: int) -> str:
    """When a process started, in ticks since boot; empty if there is none, or only a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in (b"Z", b"X") else fields[19].decode()


def _boot() -> str:
    try:
        return Path(BOOT_ID).read_text().strip()
    except OSError:
        return ""


def _path(records: str, name: str) -> str:
    return f"{records}/{name}{NOTE_END}"
