"""A real podman with a store and an image of its own, made from Debian's busybox: no registry is asked for anything.

The machines of the check have hybrid cgroups and few rights: podman needs the driver vfs, the runtime runc, and limits
that it need not raise. Users say the same by the pilot's options for containers."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

PACKAGES = "podman runc busybox-static"
IMAGE = "local/busybox:1"
RUN_OPTIONS = "--ulimit nofile=1024:1024 --ulimit nproc=1024:1024"


def lacking() -> str:
    """Why no container can run on this machine; empty if one can."""
    missing = [program for program in ("podman", "runc", "busybox") if shutil.which(program) is None]
    if missing:
        return f"{', '.join(missing)} (apt-get install {PACKAGES})"
    return "" if os.geteuid() == 0 else "the right to run containers with runc: run as root"


class Podman(NamedTuple):
    """`calls` has a line for each command that was given to podman."""

    command: str
    folder: Path
    calls: Path

    @property
    def settings(self) -> dict[str, str]:
        """What makes the pilots of this environment use it."""
        return {
            "MENDFLOW_CONTAINER_COMMAND": self.command,
            "MENDFLOW_CONTAINER_OPTIONS": RUN_OPTIONS,
            "MENDFLOW_CONTAINER_CACHE": str(self.folder / "cache"),
        }

    def run(self, *words: str, data: bytes | None = None) -> str:
        done = subprocess.run([self.command, *words], input=data, capture_output=True, check=True)
        return done.stdout.decode()

    def containers(self) -> list[str]:
        """The names of all containers, those that have ended included."""
        return self.run("ps", "--all", "--format", "{{.Names}}").split()

    def given(self, verb: str) -> list[str]:
        """The commands with this verb, as they were given."""
        return [line for line in self.calls.read_text().splitlines() if f" {verb} " in f" {line} "]


@contextmanager
def podman() -> Iterator[Podman]:
    folder = Path(tempfile.mkdtemp(prefix="podman-", dir="/tmp"))
    program, calls = folder / "podman", folder / "calls"
    words = f"--root {folder}/store --runroot {folder}/run --storage-driver=vfs --runtime {shutil.which('runc')}"
    program.write_text(
        f'#!/bin/sh\necho "$*" | head -c 4000 | tr "\\n" " " >>{calls}\necho >>{calls}\nexec podman {words} "$@"\n'
    )
    program.chmod(0o755)
    made = Podman(str(program), folder, calls)
    made.run("import", "-", IMAGE, data=_busybox(folder / "image"))
    calls.write_text("")
    try:
        yield made
    finally:
        subprocess.run([made.command, "rm", "--all", "--force", "--time", "0"], capture_output=True)
        subprocess.run([made.command, "unshare", "true"], capture_output=True)
        shutil.rmtree(folder, ignore_errors=True)


def _busybox(root: Path) -> bytes:
    """A file system with busybox and its commands, as a tar archive."""
    for name in ("bin", "tmp", "etc"):
        (root / name).mkdir(parents=True)
    busybox = shutil.which("busybox")
    assert busybox is not None
    shutil.copy(busybox, root / "bin/busybox")
    for name in subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True).stdout.split():
        if name != "busybox":
            (root / "bin" / name).symlink_to("busybox")
    return subprocess.run(["tar", "-C", str(root), "-c", "."], capture_output=True, check=True).stdout
