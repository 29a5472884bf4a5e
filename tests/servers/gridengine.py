"""A real Grid Engine, for tests: one qmaster and one execution host on this machine, each a process that can be killed.

Everything is its own: root, cell, spool and ports. The programs are those of Debian's packages. They need not be
installed: MENDFLOW_GRIDENGINE may name a folder that the packages are unpacked in; as the qmaster looks for its
libraries under /usr/lib/gridengine only, it then runs where that folder seems to be there."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.patience import PATIENCE_S
from tests.servers.processes import dying_with_us, end, free_port, launch

PACKAGES = "gridengine-master gridengine-exec gridengine-client libjemalloc2"
UNPACKED = Path(os.environ.get("MENDFLOW_GRIDENGINE", "/"))
PROGRAMS = UNPACKED / "usr/lib/gridengine"
SHARED = UNPACKED / "usr/share/gridengine"
HOST = "localhost"
BOUNDS = ("rt", "cpu", "fsize", "data", "stack", "core", "rss", "vmem")


def lacking() -> str:
    """Why there can be no Grid Engine on this machine; empty if there can."""
    missing = [name for name in ("sge_qmaster", "sge_execd", "qsub") if not (PROGRAMS / name).exists()]
    if missing:
        return f"{', '.join(missing)} (apt-get install {PACKAGES}, or unpack them to $MENDFLOW_GRIDENGINE)"
    return "" if os.geteuid() == 0 else "the right to start jobs for others: run as root"


class GridEngine:
    """One queue, all.q, with so many slots."""

    def __init__(self, *, slots: int = 4) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="sge-", dir="/tmp"))
        self.folder.chmod(0o755)
        self._slots = slots
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        libraries = [PROGRAMS, UNPACKED / "usr/lib/x86_64-linux-gnu"]
        self.settings = {
            "SGE_ROOT": str(self.folder),
            "SGE_CELL": "default",
            "SGE_QMASTER_PORT": str(free_port()),
            "SGE_EXECD_PORT": str(free_port()),
            "LD_LIBRARY_PATH": ":".join(map(str, libraries)),
        }
        self.environment = {**os.environ, **self.settings, "SGE_ND": "true"}

    # coming and going

    def start(self) -> None:
        self._write_cell()
        spooled = f"{self.folder}/default/common;{self.folder}/spool/qmaster"
        self._prepare("spoolinit", "classic", "libspoolc", spooled, "init")
        for kind, given in (("complexes", "util/resources/centry"), ("usersets", "util/resources/usersets")):
            self._prepare("spooldefaults.bin", kind, str(SHARED / given))
        self._prepare("spooldefaults.bin", "managers", "root")
        self.start_master()
        self._hurry()
        self.run("qconf", "-as", HOST)
        self._launch("execd", str(PROGRAMS / "sge_execd"))
        (self.folder / "queue").write_text(_queue(self._slots))
        self.run("qconf", "-Aq", str(self.folder / "queue"))
        self.until(lambda: "-" not in self.run("qhost").splitlines()[-1].split()[6], "the host to be there")

    def stop(self) -> None:
        """End it all, and leave nothing."""
        for name in list(self._processes):
            self._end(name)
        for pid in self._pids():
            _kill(pid)
        shutil.rmtree(self.folder, ignore_errors=True)

    def start_master(self) -> None:
        self._launch("qmaster", *_with_programs_in_place(), str(_installed("sge_qmaster")))
        self.until(lambda: self._says("qhost") is not None, "the qmaster to answer")

    def kill_master(self) -> None:
        self._end("qmaster")

    # what users do

    def run(self, *words: str) -> str:
        done = self._do(*words)
        assert done.returncode == 0, f"{' '.join(words)}: {done.stderr}{done.stdout}\n{self.story()}"
        return done.stdout

    def clear(self) -> None:
        """Delete every job, and wait until none is left."""
        self._do("qdel", "-f", "-u", "*")
        self.until(lambda: not self.run("qstat", "-u", "*").strip(), "all jobs to be over")

    def until(self, holds: Callable[[], bool], what: str, patience_s: float = PATIENCE_S) -> None:
        until = time.monotonic() + patience_s
        while not holds():
            assert time.monotonic() < until, f"waited {patience_s} s for {what}\n{self.story()}"
            time.sleep(0.1)

    def story(self) -> str:
        """The end of each log, for whoever must find out what went wrong."""
        logs = [*self.folder.glob("*.log"), *self.folder.glob("spool/**/messages")]
        return "\n".join(f"{path.name}:\n{path.read_text(errors='replace')[-1500:]}" for path in logs)

    # inside

    def _do(self, program: str, *words: str) -> "subprocess.CompletedProcess[str]":
        command = [str(PROGRAMS / program), *words]
        return subprocess.run(
            command, env=self.environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )

    def _says(self, *words: str) -> str | None:
        done = self._do(*words)
        return done.stdout if done.returncode == 0 else None

    def _prepare(self, program: str, *words: str) -> None:
        command = [*_with_programs_in_place(), str(_installed(program)), *words]
        done = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
        assert done.returncode == 0, f"{program} {' '.join(words)}: {done.stderr}{done.stdout}"

    def _write_cell(self) -> None:
        common = self.folder / "default/common"
        for part in (common, self.folder / "spool/qmaster/job_scripts", self.folder / "spool/execd"):
            part.mkdir(parents=True)
        (self.folder / "util").symlink_to(SHARED / "util")
        kind = subprocess.run(
            [self.folder / "util/arch"], env=self.environment, capture_output=True, text=True, check=True
        )
        for name in ("bin", "utilbin", "lib"):
            (self.folder / name).mkdir()
            (self.folder / name / kind.stdout.strip()).symlink_to(PROGRAMS)
        (common / "bootstrap").write_text(self._bootstrap())
        (common / "act_qmaster").write_text(f"{HOST}\n")
        (common / "cluster_name").write_text("test\n")
        (common / "host_aliases").write_text(f"{HOST} {socket.gethostname()}\n")
        changed = {"execd_spool_dir": f"{self.folder}/spool/execd", "min_uid": "0", "min_gid": "0"}
        changed |= {"load_report_time": "00:00:02", "gid_range": "65400-65500"}
        lines = [line for line in (SHARED / "default-configuration").read_text().splitlines() if line[:1].isalpha()]
        words = [line.split(None, 1) for line in lines]
        text = "".join(f"{name} {changed.get(name, rest)}\n" for name, rest in words)
        (common / "configuration").write_text(text)

    def _hurry(self) -> None:
        """Let it schedule every second, and whenever a job comes or ends."""
        changed = {"schedule_interval": "0:0:1", "flush_submit_sec": "1", "flush_finish_sec": "1"}
        changed |= {"job_load_adjustments": "NONE"}
        words = [line.split(None, 1) for line in self.run("qconf", "-ssconf").splitlines()]
        (self.folder / "scheduler").write_text("".join(f"{name} {changed.get(name, rest)}\n" for name, rest in words))
        self.run("qconf", "-Msconf", str(self.folder / "scheduler"))

    def _bootstrap(self) -> str:
        settings = {
            "admin_user": "none",
            "default_domain": "none",
            "ignore_fqdn": "true",
            "spooling_method": "classic",
            "spooling_lib": "libspoolc",
            "spooling_params": f"{self.folder}/default/common;{self.folder}/spool/qmaster",
            "binary_path": f"{self.folder}/bin",
            "qmaster_spool_dir": f"{self.folder}/spool/qmaster",
            "security_mode": "none",
            "listener_threads": "2",
            "worker_threads": "2",
            "scheduler_threads": "1",
        }
        return "Version: 6.2\n" + "".join(f"{name} {text}\n" for name, text in settings.items())

    def _launch(self, name: str, *command: str) -> None:
        log = self.folder / f"{name}.log"
        self._processes[name] = launch([*dying_with_us(), *command], log=log, cwd=self.folder, env=self.environment)

    def _end(self, name: str) -> None:
        if (process := self._processes.pop(name, None)) is not None:
            end(process, kill=True)

    def _pids(self) -> list[int]:
        """What runs here with our root in its environment: shepherds and jobs."""
        mark = f"SGE_ROOT={self.folder}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                try:
                    found += [int(entry.name)] if mark in (entry / "environ").read_bytes().split(b"\0") else []
                except OSError:
                    continue  # it has ended
        return found


def _installed(program: str) -> Path:
    return Path("/usr/lib/gridengine", program)


def _with_programs_in_place() -> list[str]:
    """What goes before a command that is to see the unpacked programs where it expects them."""
    if Path("/") == UNPACKED:
        return []
    put = f"mount -t overlay overlay -o lowerdir={UNPACKED}/usr/lib:/usr/lib /usr/lib"
    return ["unshare", "--mount", "sh", "-c", f'{put} && exec "$@"', "sh"]


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def _queue(slots: int) -> str:
    """The settings of a queue; all of them have to be said."""
    none = "ckpt_list pe_list prolog epilog starter_method suspend_method resume_method terminate_method owner_list"
    none += " user_lists xuser_lists subordinate_list complex_values projects xprojects calendar load_thresholds"
    none += " suspend_thresholds"
    bounds = [f"{kind}_{what}" for kind in "sh" for what in BOUNDS]
    settings = {
        "qname": "all.q",
        "hostlist": HOST,
        "seq_no": "0",
        "nsuspend": "1",
        "suspend_interval": "00:05:00",
        "priority": "0",
        "min_cpu_interval": "00:05:00",
        "processors": "UNDEFINED",
        "qtype": "BATCH INTERACTIVE",
        "rerun": "FALSE",
        "slots": str(slots),
        "tmpdir": "/tmp",
        "shell": "/bin/sh",
        "shell_start_mode": "posix_compliant",
        "notify": "00:00:60",
        "initial_state": "default",
        **dict.fromkeys(none.split(), "NONE"),
        **dict.fromkeys(bounds, "INFINITY"),
    }
    return "".join(f"{name} {text}\n" for name, text in settings.items())
