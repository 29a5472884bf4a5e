"""What `mendflow admin doctor` looks at: this machine, the data folder, the store and the server. It changes and makes
nothing."""

import os
import resource
import shutil
import socket
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, Literal

import msgspec

from mendflow.cli.options import ServerTarget, store_url
from mendflow.cli.server_file import ServerInfo, find_server
from mendflow.client import Client
from mendflow.core.model.errors import RequestError
from mendflow.maintenance import SECRETS_KEY_FILE, STORE_FILE, SchemaVersion, schema_of
from mendflow.version import VERSION

State = Literal["ok", "warning", "problem"]
PORT: Final = 8642
LOW_BYTES, NO_BYTES = 2 << 30, 200 << 20
OPEN_FILES_MIN: Final = 4096
CLOCK_MS_MAX: Final = 2_000
PRIVATE_FILES: Final = (SECRETS_KEY_FILE, STORE_FILE, "server.json", "token", "tokens")
"""Files of a data folder that nobody else may read."""
PROGRAMS: Final = {
    "shells": ("bash",),
    "containers": ("apptainer", "podman", "docker"),
    "environments": ("uv", "micromamba", "conda"),
    "batch systems": ("sbatch", "bsub", "qsub", "condor_submit"),
}


class Finding(msgspec.Struct, frozen=True):
    """`advice` says what to do; it is empty where all is well."""

    topic: str
    state: State
    text: str
    advice: str = ""


def local_findings(target: ServerTarget) -> Iterator[Finding]:
    """All that can be seen without asking a server."""
    yield Finding("version", "ok", f"mendflow {VERSION}, Python {sys.version.split()[0]}")
    yield from _of_folder(target.folder)
    yield from _of_store(target.folder)
    yield _open_files()
    yield from _programs()
    if find_server(target.folder) is None and not target.server:
        yield _port()


def _of_folder(folder: Path) -> Iterator[Finding]:
    if not folder.is_dir():
        yield Finding("data folder", "ok", f"{folder} does not exist yet; mendflow run and serve make it")
        folder = next(parent for parent in folder.parents if parent.is_dir())
    elif not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        yield Finding(
            "data folder", "problem", f"{folder} cannot be read and written by you", f"chown it, or chmod 700 {folder}"
        )
    elif (mode := stat.S_IMODE(folder.stat().st_mode)) & 0o077:
        text = f"{folder} can be entered by other accounts (mode {mode:o}): inputs, outputs and logs are in it"
        yield Finding("data folder", "warning", text, f"chmod 700 {folder}")
    else:
        yield Finding("data folder", "ok", f"{folder}, for its owner alone")
    shut = not folder.stat().st_mode & 0o077
    open_to_others = [
        path
        for name in PRIVATE_FILES
        if (path := folder / name).is_file() and path.stat().st_mode & 0o077 and (not shut or name == SECRETS_KEY_FILE)
    ]
    for path in open_to_others:
        state: State = "problem" if path.name == SECRETS_KEY_FILE else "warning"
        yield Finding("permissions", state, f"{path} can be read by other accounts", f"chmod 600 {path}")
    yield _disk(folder)


def _disk(folder: Path) -> Finding:
    usage = shutil.disk_usage(folder)
    free = f"{usage.free / (1 << 30):.1f} GiB of {usage.total / (1 << 30):.0f} free at {folder}"
    advice = "make room: mendflow prune removes cases that are over"
    if usage.free < NO_BYTES:
        return Finding("disk", "problem", f"nearly full: {free}", advice)
    return Finding("disk", "warning", free, advice) if usage.free < LOW_BYTES else Finding("disk", "ok", free)


def _of_store(folder: Path) -> Iterator[Finding]:
    try:
        found = schema_of(store_url(), folder)
    except RequestError as error:
        yield Finding(
            "store", "problem", error.message, "restore a backup (mendflow admin restore), or mend the address"
        )
        return
    if found is None:
        return
    yield _of_schema(found)
    if abs(found.ahead_ms) > CLOCK_MS_MAX:
        text = f"the clock of {found.shown} differs from the one here by {abs(found.ahead_ms) / 1000:.0f} s"
        yield Finding("clock", "warning", text, "let both machines follow a time server (chrony, systemd-timesyncd)")


def _of_schema(found: SchemaVersion) -> Finding:
    if not found.present:
        return Finding("store", "ok", f"{found.shown} is empty, or does not exist yet")
    if found.present > found.newest:
        text = f"{found.shown} has schema {found.present}, from a newer mendflow; this one reads up to {found.newest}"
        return Finding("store", "problem", text, "upgrade mendflow, or use another store")
    if found.present < found.newest:
        text = f"{found.shown} has schema {found.present}; the next start brings it to {found.newest}"
        return Finding("store", "warning", text, "make a backup first: mendflow admin backup FOLDER")
    return Finding("store", "ok", f"{found.shown}, schema {found.present}")


def _open_files() -> Finding:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft >= OPEN_FILES_MIN:
        return Finding("open files", "ok", f"up to {soft}")
    text = f"only {soft} files and connections may be open at once; each pilot and viewer needs some"
    return Finding("open files", "warning", text, f"ulimit -n {min(65536, hard)}, or LimitNOFILE= of the service")


def _programs() -> Iterator[Finding]:
    for topic, names in PROGRAMS.items():
        found = [name for name in names if shutil.which(name)]
        if topic == "shells" and not found:
            yield Finding(topic, "warning", "there is no bash: scripts run under sh -eu", "install bash")
        elif found:
            yield Finding(topic, "ok", ", ".join(found))
        else:
            yield Finding(topic, "ok", f"none of {', '.join(names)} here; only jobs that ask for one need it")


def _port() -> Finding:
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind(("127.0.0.1", PORT))
        except OSError:
            text = f"port {PORT} of this machine is taken by another program"
            return Finding("port", "warning", text, "mendflow serve --port 0 takes any free one")
    return Finding("port", "ok", f"{PORT} is free for mendflow serve")


async def server_findings(target: ServerTarget, asking: Callable[[str, str], Client]) -> list[Finding]:
    """What a server says of itself, if one was named, or runs on the data folder. `asking` is given its address, and
    the pin of the certificate that it shows, if it says which."""
    running: ServerInfo | None = None if target.server else find_server(target.folder)
    url = target.server or (running.url if running is not None else "")
    if not url:
        return [Finding("server", "ok", f"none runs on {target.folder}; commands open the store themselves")]
    async with asking(url, running.tls_pin if running is not None else "") as client:
        try:
            health = await client.health()
        except RequestError as error:
            return [Finding("server", "problem", f"{url}: {error.message}", "look at its log, and start it again")]
        found = [Finding("server", "ok", f"{url} answers, up for {health.uptime_ms // 1000} s")]
        if health.status != "ok":
            found = [Finding("server", "problem", f"{url}: {health.message or health.status}", "look at its store")]
        if health.version != VERSION:
            text = f"the server is mendflow {health.version}, this command {VERSION}"
            found.append(Finding("version", "warning", text, "use the same version for both"))
        if health.jobs_waiting and not health.pilots:
            text = f"{health.jobs_waiting} jobs wait, and no pilot is there to run them"
            found.append(Finding("pilots", "warning", text, "mendflow pilot --server URL, or a site"))
        else:
            found.append(Finding("pilots", "ok", f"{health.pilots}, for {health.jobs_running} running jobs"))
        return found
