"""The folder of a site, from which its pilots are started on any machine.

It has the token, which only its owner can read and no command line shows; the checks before registration; and for each
pilot a folder with its script, its secret, its log and, by default, its work."""

import os
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import msgspec

from mendflow.batch.commands import SECRET
from mendflow.batch.contract import Launch, names_of
from mendflow.core.model.checks import PilotChecks
from mendflow.core.model.sites import PilotSubmission, Site
from mendflow.core.scheduling.site_fit import life_ms
from mendflow.core.scheduling.submissions import site_of
from mendflow.tls import NO_TLS_SETTINGS, ClientTls

KEPT_S = 86_400
"""How long the folder of a failed pilot is kept, for inspection."""

WORDS_BYTES = 4096
SIGNALLED = 128
"""A shell reports a killed process as this plus the signal number."""

PSIJ_LEAVES = (".job", ".out", ".ec", ".nodefile")


def _named_variables(site: Site) -> list[str]:
    """The variables that its settings give to pilots and so to jobs; those that are taken from the server may be
    secret, and stay with the pilot."""
    return [name for name, text in site.batch.environment.items() if not text.startswith(SECRET)]


def _nowhere() -> Sequence[str]:
    return ()


class SiteFolders:
    def __init__(self, data: Path) -> None:
        self._data = data
        self._token = ""
        self._servers: Callable[[], Sequence[str]] = _nowhere
        self._tls = ClientTls()

    def introduce(self, *, token: str, servers: Callable[[], Sequence[str]], tls: ClientTls = NO_TLS_SETTINGS) -> None:
        """`token` is for the pilots, empty if none is needed; `servers` returns the servers' addresses;
        `tls` is how they are trusted, by files that the machines of the sites see too. Must be called
        before any pilot is submitted."""
        self._token, self._servers, self._tls = token, servers, tls

    @property
    def ready(self) -> bool:
        return bool(self._servers())

    def folder(self, site: Site) -> Path:
        return Path(site.batch.folder) if site.batch.folder else self._data / "sites" / site.name

    def prepare(self, site: Site, submission: PilotSubmission, secret: str = "") -> Launch:
        """Write everything that this pilot needs; `secret` proves that it is the one of this submission. Raises
        OSError."""
        top = self.folder(site)
        launch = Launch(submission.name, top / submission.name)
        for folder in (top, launch.folder):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self._token:
            _write(top / "token", self._token + "\n", 0o600)
        if site.pilots.checks != PilotChecks():
            _write(_checks(top, site), msgspec.json.encode(site.pilots.checks).decode(), 0o600)
        if secret:
            _write(launch.secret, secret + "\n", 0o600)
        _write(launch.script, self._script(site, submission, launch, proves=bool(secret)), 0o700)
        return launch

    def end_of_log(self, site: Site, name: str) -> str:
        """How a pilot ended, if not well, and the last line of its log."""
        launch = Launch(name, self.folder(site) / name)
        try:
            with launch.log.open("rb") as log:
                log.seek(max(0, log.seek(0, os.SEEK_END) - WORDS_BYTES))
                lines = log.read().decode(errors="replace").strip().splitlines()
        except OSError:
            lines = []
        return "; ".join(part for part in (_how_ended(launch), *lines[-1:]) if part)

    def tidy(self, site: Site, *, keep: Collection[str], left: Collection[str]) -> None:
        """Remove the folders of pilots that have left, unless they keep folders of failed attempts, and of others that
        ended long ago."""
        oldest = time.time() - max(KEPT_S, (site.pilots.keep_failed_ms or 0) // 1000)
        for folder in self.folder(site).glob(f"{names_of(site)}*"):
            if folder.name in keep or site_of(folder.name) != site.name:  # other sites may use the same folder
                continue
            try:
                is_old = folder.stat().st_mtime < oldest
                if is_old or (folder.name in left and not _keeps_attempts(folder)):
                    shutil.rmtree(folder, ignore_errors=True)
            except FileNotFoundError:
                continue
        for aside in self.folder(site).glob("psij/*/*"):
            if aside.suffix in PSIJ_LEAVES and aside.stat().st_mtime < oldest:
                aside.unlink(missing_ok=True)

    def sweep(self, sites: Collection[str]) -> None:
        """Remove folders that other sites have left in the data folder, except those of pilots that may still run."""
        try:
            tops = [top for top in (self._data / "sites").iterdir() if top.is_dir() and top.name not in sites]
        except FileNotFoundError:
            return
        for top in tops:
            pilots = [folder for folder in top.glob("mendflow-*") if site_of(folder.name) == top.name]
            for folder in filter(_is_over, pilots):
                shutil.rmtree(folder, ignore_errors=True)
            if not any(folder.exists() for folder in pilots):
                shutil.rmtree(top, ignore_errors=True)

    def _script(self, site: Site, submission: PilotSubmission, launch: Launch, *, proves: bool) -> str:
        pilot = site.pilots
        work = _expanded(pilot.work) if pilot.work else shlex.quote(str(launch.folder / "work"))
        proof = ["--name-secret-file", str(launch.secret)] if proves else []
        lines = [
            "#!/bin/sh",
            "umask 077",
            f"exec >>{shlex.quote(str(launch.log))} 2>&1 </dev/null",
            f"trap {shlex.quote(f'echo $? > {shlex.quote(str(_ended(launch)))}')} EXIT",
            *([pilot.before] if pilot.before else []),
            "trap : TERM",  # the pilot leaves when asked, and this waits for it
            f"{shlex.quote(pilot.python or sys.executable)} -P -m mendflow.pilot --work {work} "
            + " ".join(map(shlex.quote, [*self._words(site, submission), *proof])),
        ]
        return "\n".join(lines) + "\n"

    def _words(self, site: Site, submission: PilotSubmission) -> list[str]:
        pilot, top = site.pilots, self.folder(site)
        given: dict[str, str | int | float] = {
            "--name": submission.name,
            "--site": site.name,
            "--jobs": pilot.slots,
            "--cpus": pilot.cpus,
            "--gpus": pilot.gpus,
            "--grace-ms": pilot.grace_ms,
            "--away-exit-ms": pilot.away_exit_ms,
            "--token-file": str(top / "token") if self._token else "",
            "--checks": str(_checks(top, site)) if pilot.checks != PilotChecks() else "",
            "--memory-bytes": pilot.memory_bytes,
            "--disk-bytes": pilot.disk_bytes,
            "--idle-exit-ms": pilot.idle_exit_ms if submission.purpose == "jobs" else 0,
            "--ttl-ms": life_ms(site),
            "--storage": pilot.storage,
            "--pass-env": ",".join(_named_variables(site)),
            "--share": pilot.share or "",
            "--cache-size": pilot.cache_bytes,
            "--cache-policy": pilot.cache_policy,
            "--min-free": pilot.min_free_bytes,
        }
        bounds = {
            "--log-size": pilot.log_size_bytes,
            "--keep-failed": pilot.keep_failed_ms,
            "--keep-failed-size": pilot.keep_failed_size_bytes,
            "--keep-failed-max": pilot.keep_failed_max,
        }
        set_bounds = [str(word) for pair in bounds.items() if pair[1] is not None for word in pair]
        servers = pilot.servers or tuple(self._servers())
        words = [word for server in servers for word in ("--server", server)] + self._tls.words
        return (
            words
            + set_bounds
            + [str(word) for pair in given.items() if pair[1] or pair[0] == "--gpus" for word in pair]
        )


def _keeps_attempts(folder: Path) -> bool:
    """Whether its pilot has kept folders of failed attempts there, for people to look into."""
    return any((folder / "work" / "attempts").glob("*.kept"))


def _ended(launch: Launch) -> Path:
    """Where its script writes how it ended; a killed script writes nothing."""
    return launch.folder / "ended"


def _how_ended(launch: Launch) -> str:
    try:
        code = int(_ended(launch).read_text())
    except (OSError, ValueError):
        return ""
    if code > SIGNALLED:
        return f"the pilot was killed by signal {code - SIGNALLED}"
    return f"the pilot ended with exit code {code}" if code else ""


def _is_over(folder: Path) -> bool:
    """Whether no pilot runs from there: it has recorded its end, never started, or has been silent for very long."""
    launch = Launch(folder.name, folder)
    if _ended(launch).exists() or not launch.log.exists():
        return True
    return launch.log.stat().st_mtime < time.time() - KEPT_S


def _checks(top: Path, site: Site) -> Path:
    return top / f"{site.name}.checks.json"


def _expanded(path: str) -> str:
    """Quoted for a shell that expands variables and nothing else."""
    quoted = path.replace("\\", "\\\\").replace('"', '\\"').replace("`", "\\`").replace("$(", "\\$(")
    return f'"{quoted}"'


def _write(path: Path, text: str, mode: int) -> None:
    """Write atomically, and never readable by others."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode), "w") as out:
        out.write(text)
    draft.replace(path)
