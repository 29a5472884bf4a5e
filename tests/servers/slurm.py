"""A real Slurm, for tests: one controller and some nodes on this machine, each a process that can be killed like one.

Everything is its own: folder, ports, the key and the socket by which its parts trust each other. Whatever runs under it
has `SLURM_CONF` in its environment, jobs too; so at the end all of it is found, also what outlived its node."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.patience import PATIENCE_S
from tests.servers.processes import dying_with_us, end, free_port, launch

PACKAGES = "slurm-wlm munge"
PROGRAMS = ("slurmctld", "slurmd", "sbatch", "munged", "setpriv")
CGROUPS = Path("/sys/fs/cgroup")

NODE_AWAY_S = 5
KILL_WAIT_S = 2


def lacking() -> str:
    """Why there can be no Slurm on this machine; empty if there can."""
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        return f"{', '.join(missing)} (apt-get install {PACKAGES})"
    return "" if os.geteuid() == 0 else "the right to start jobs for others: run as root"


def can_bound_memory() -> bool:
    """Whether jobs can be kept within their memory here: by the first kind of cgroups, with a controller for it."""
    return os.access(CGROUPS / "memory" / "memory.limit_in_bytes", os.W_OK)


class BatchJob(NamedTuple):
    id: int
    name: str
    state: str
    node: str


class Slurm:
    """Its nodes are n1, n2 and so on. With `bound_memory` the kernel kills what takes more than its job asked for."""

    def __init__(self, *, nodes: int = 3, cpus: int = 4, memory_mb: int = 2_000, bound_memory: bool = False) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="slurm-", dir="/tmp"))  # a socket's path must be short
        self.folder.chmod(0o755)
        self.nodes = [f"n{number}" for number in range(1, nodes + 1)]
        self._cpus, self._memory_mb, self._bound_memory = cpus, memory_mb, bound_memory
        self._ports = {name: free_port() for name in ("controller", *self.nodes)}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._munge = self.folder / "munge"
        self.environment = {**os.environ, "SLURM_CONF": str(self.folder / "slurm.conf")}

    # coming and going

    def start(self) -> None:
        for part in ("log", "state", "spool", *(f"spool/{node}" for node in self.nodes)):
            (self.folder / part).mkdir()
        (self.folder / "slurm.conf").write_text(self._settings())
        bounds = "ConstrainRAMSpace=yes\nConstrainSwapSpace=no\nConstrainCores=no\n"
        (self.folder / "cgroup.conf").write_text(f"CgroupPlugin=cgroup/v1\n{bounds}")
        self._start_munge()
        self.start_controller()
        for node in self.nodes:
            self.start_node(node)
        self.until(lambda: all(state == "idle" for state in self.node_states().values()), "all nodes to be idle")

    def stop(self) -> None:
        """End it all, and leave nothing: no process, no folder, no cgroup."""
        for pid in self._jobs_pids():
            _kill(pid)
        for name in [name for name in self._processes if name != "munge"]:
            self._end(name, kill=True)
        self.until(lambda: not [_kill(pid) for pid in self._jobs_pids()], "what ran under Slurm to be dead")
        self._end("munge", kill=True)
        for node in self.nodes:
            _remove_cgroups(CGROUPS / "memory" / f"slurm_{node}", CGROUPS / "freezer" / f"slurm_{node}")
        shutil.rmtree(self.folder)

    def start_controller(self) -> None:
        self._launch("controller", "slurmctld", "-D", "-f", self.environment["SLURM_CONF"])
        self.until(lambda: self._says("scontrol", "ping") is not None, "the controller to answer")

    def kill_controller(self, *, since: Path | None = None) -> None:
        """As when its machine loses power: what it had not written yet, it will not know. It writes when it finds the
        time; `since`, from `on_disk`, makes sure that nothing after that moment was written."""
        self._end("controller", kill=True)
        if since is not None:
            shutil.rmtree(self.folder / "state")
            shutil.copytree(since, self.folder / "state")

    def on_disk(self) -> Path:
        """What the controller has written until now."""
        copy = Path(tempfile.mkdtemp(prefix="state-", dir=self.folder))
        return shutil.copytree(self.folder / "state", copy, dirs_exist_ok=True)

    def start_node(self, node: str) -> None:
        self._launch(node, "slurmd", "-D", "-N", node, "-f", self.environment["SLURM_CONF"])

    def kill_node(self, node: str, *, and_jobs: bool = False) -> None:
        """As when it is cut off: nobody hears of it again, and what ran there runs on. Or as when it loses power."""
        self._end(node, kill=True)
        if and_jobs:
            for pid in self._pids(f"SLURMD_NODENAME={node}"):
                _kill(pid)

    # what users do

    def run(self, *words: str) -> str:
        done = subprocess.run(
            words, env=self.environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
        assert done.returncode == 0, f"{' '.join(words)}: {done.stderr}\n{self.story()}"
        return done.stdout

    def submit(self, command: str, *options: str, name: str) -> int:
        out = str(self.folder / "log" / f"{name}.out")
        return int(self.run("sbatch", "--parsable", "-J", name, "-o", out, *options, "--wrap", command))

    def jobs(self, name: str = "") -> list[BatchJob]:
        """What it knows of jobs that wait, run, or have just ended."""
        wanted = ["--name", name] if name else []
        lines = self.run("squeue", "-h", "-a", "-t", "all", "-o", "%i|%j|%T|%N", *wanted).splitlines()
        split = [line.split("|") for line in lines]
        return [BatchJob(int(id), name, state, node) for id, name, state, node in split]

    def living(self) -> list[BatchJob]:
        return [job for job in self.jobs() if job.state in ("PENDING", "RUNNING", "COMPLETING", "CONFIGURING")]

    def node_states(self) -> dict[str, str]:
        said = self._says("sinfo", "-h", "-N", "-o", "%N %T") or ""
        return dict(line.split() for line in said.splitlines())

    def until(self, holds: Callable[[], bool], what: str, patience_s: float = PATIENCE_S) -> None:
        until = time.monotonic() + patience_s
        while not holds():
            assert time.monotonic() < until, f"waited {patience_s} s for {what}\n{self.story()}"
            time.sleep(0.1)

    def story(self) -> str:
        """The end of each log, for whoever must find out what went wrong."""
        logs = sorted((self.folder / "log").iterdir())
        return "\n".join(f"{path.name}:\n{path.read_text(errors='replace')[-1500:]}" for path in logs)

    # inside

    def _says(self, *words: str) -> str | None:
        done = subprocess.run(
            words, env=self.environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
        return done.stdout if done.returncode == 0 else None

    def _start_munge(self) -> None:
        """By it all parts know each other. It will not run as root, and reads a key that only its user can."""
        self._munge.mkdir(mode=0o755)
        key = self._munge / "key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        for path in (self._munge, key):
            shutil.chown(path, "munge", "munge")
        own = ["--key-file", str(key), "--socket", str(self._munge / "socket"), "--pid-file", str(self._munge / "pid")]
        logs = ["--log-file", str(self._munge / "log"), "--seed-file", str(self._munge / "seed")]
        user = ["setpriv", "--reuid", "munge", "--regid", "munge", "--clear-groups"]
        self._launch("munge", *user, *dying_with_us(), "munged", "--foreground", *own, *logs)
        self.until(lambda: (self._munge / "socket").exists(), "munge to listen")

    def _launch(self, name: str, *command: str) -> None:
        assert name not in self._processes, f"{name} runs already"
        words = list(command) if name == "munge" else [*dying_with_us(), *command]
        log = self.folder / "log" / f"{name}.log"
        self._processes[name] = launch(words, log=log, cwd=self.folder, env=self.environment)

    def _end(self, name: str, *, kill: bool) -> None:
        if (process := self._processes.pop(name, None)) is not None:
            end(process, kill=kill)

    def _jobs_pids(self) -> list[int]:
        """All that runs here below a node: its keeper of each job, and the job."""
        own = {process.pid for process in self._processes.values()}
        return [pid for pid in self._pids() if pid not in own]

    def _pids(self, *more: str) -> list[int]:
        """Processes that have this in their environment, beside our settings."""
        marks = {word.encode() for word in (f"SLURM_CONF={self.environment['SLURM_CONF']}", *more)}
        processes = [entry for entry in Path("/proc").iterdir() if entry.name.isdigit() and _runs(entry)]
        return [int(entry.name) for entry in processes if marks <= set(_environment(entry))]

    def _settings(self) -> str:
        host = socket.gethostname().partition(".")[0]
        kind = "cgroup" if self._bound_memory else "linuxproc"
        lines = [
            "ClusterName=test",
            f"SlurmctldHost={host}(127.0.0.1)",
            f"SlurmctldPort={self._ports['controller']}",
            "SlurmUser=root",
            f"AuthInfo=socket={self._munge}/socket,cred_expire=5",  # so long a job waits before it runs elsewhere
            f"SlurmctldPidFile={self.folder}/slurmctld.pid",
            f"SlurmdPidFile={self.folder}/slurmd-%n.pid",
            f"SlurmdSpoolDir={self.folder}/spool/%n",
            f"StateSaveLocation={self.folder}/state",
            f"ProctrackType=proctrack/{kind}",
            f"TaskPlugin=task/{'cgroup' if self._bound_memory else 'none'}",
            "SelectType=select/cons_tres",
            "SelectTypeParameters=CR_Core_Memory",
            "DefMemPerCPU=100",
            "MpiDefault=none",
            "ReturnToService=2",
            "SlurmdParameters=config_overrides",  # a node has what is written here, however small this machine is
            f"SlurmdTimeout={NODE_AWAY_S}",
            "MessageTimeout=2",
            "TCPTimeout=1",
            f"KillWait={KILL_WAIT_S}",
            "SchedulerParameters=batch_sched_delay=0,sched_interval=1",
        ]
        have = f"CPUs={self._cpus} RealMemory={self._memory_mb}"
        place = f"NodeHostname={host} NodeAddr=127.0.0.1"
        lines += [f"NodeName={node} {place} Port={self._ports[node]} {have}" for node in self.nodes]
        lines += [f"PartitionName=main Nodes={','.join(self.nodes)} Default=YES MaxTime=INFINITE State=UP"]
        return "\n".join([*lines, ""])


def _environment(process: Path) -> list[bytes]:
    try:
        return (process / "environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _runs(process: Path) -> bool:
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _kill(pid: int) -> int:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    return pid


def _remove_cgroups(*tops: Path) -> None:
    for top in tops:
        for folder, _, _ in os.walk(top, topdown=False):
            try:
                os.rmdir(folder)
            except OSError:  # the kernel is not through with it; it is empty, and in nobody's way
                continue
