"""A real OpenSSH server on the loopback interface, for one user with a key and a password.

The program is that of Debian's openssh-server. It need not be installed: MENDFLOW_OPENSSH may name a folder that the
package is unpacked in, with libwrap0. The server runs where its own /etc/passwd and /etc/shadow seem to be the
machine's, so that there is such a user and no other."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.servers.processes import dying_with_us, end, free_port, launch

PACKAGES = "openssh-server openssh-client"
UNPACKED = Path(os.environ.get("MENDFLOW_OPENSSH", "/"))
SERVER = UNPACKED / "usr/sbin/sshd"
START_S = 20
USER, PASSWORD = "ann", "p@ss/wörd:1"


def lacking() -> str:
    """Why there can be no server of ssh on this machine; empty if there can."""
    missing = [program for program in ("sftp", "ssh-keygen", "unshare", "openssl") if shutil.which(program) is None]
    missing += [] if SERVER.exists() else ["sshd"]
    if missing:
        return f"{', '.join(missing)} (apt-get install {PACKAGES}, or unpack them to $MENDFLOW_OPENSSH)"
    return "" if os.geteuid() == 0 else "the right to let others log in: run as root"


class SshServer(NamedTuple):
    """`root` is a folder of the user's; `config` is what a client needs to know the server by, and `key` opens it."""

    port: int
    root: Path
    config: Path
    key: Path
    log: Path

    def url(self, name: str, login: str = USER) -> str:
        return f"scp://{login}@127.0.0.1:{self.port}{self.root}/{name}"


@contextmanager
def ssh_server() -> Iterator[SshServer]:
    folder = Path(tempfile.mkdtemp(prefix="ssh-", dir="/tmp"))
    folder.chmod(0o755)
    made = _prepare(folder)
    libraries = ":".join(str(UNPACKED / part / "x86_64-linux-gnu") for part in ("lib", "usr/lib"))
    settings = {**os.environ, "LD_LIBRARY_PATH": libraries} if Path("/") != UNPACKED else dict(os.environ)
    put = [f"mount --bind {folder}/{name} /etc/{name}" for name in ("passwd", "shadow", "group")]
    script = " && ".join([*put, "mount -t tmpfs -o mode=755 tmpfs /run", "mkdir -m 755 /run/sshd", 'exec "$@"'])
    command = [
        "unshare",
        "--mount",
        "sh",
        "-c",
        script,
        "sh",
        str(SERVER),
        "-D",
        "-e",
        "-f",
        str(folder / "sshd_config"),
    ]
    process = launch([*dying_with_us(), *command], log=made.log, cwd=folder, env=settings)
    try:
        _wait(made, process)
        yield made
    finally:
        end(process, kill=True)
        shutil.rmtree(folder, ignore_errors=True)


def _prepare(folder: Path) -> SshServer:
    port, root = free_port(), folder / "home"
    (root / ".ssh").mkdir(parents=True)
    for name in ("host", "key"):
        words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(words, check=True, capture_output=True)
    shutil.copy(folder / "key.pub", root / ".ssh" / "authorized_keys")
    own = os.getuid()
    hashing = subprocess.run(
        ["openssl", "passwd", "-6", "-stdin"], input=PASSWORD, capture_output=True, text=True, check=True
    )
    hashed = hashing.stdout.strip()
    users = [f"root:x:0:0::/root:/bin/sh\n{USER}:x:{own}:{own}::{root}:/bin/sh\nsshd:x:74:74::/run/sshd:/bin/false\n"]
    (folder / "passwd").write_text("".join(users))
    (folder / "shadow").write_text(f"root:*:19000:0:99999:7:::\n{USER}:{hashed}:19000:0:99999:7:::\n")
    (folder / "group").write_text("root:x:0:\nsshd:x:74:\n")
    (folder / "shadow").chmod(0o600)
    host = (folder / "host.pub").read_text().split()
    (folder / "known").write_text(f"[127.0.0.1]:{port} {host[0]} {host[1]}\n")
    lines = [f"UserKnownHostsFile {folder}/known", "GlobalKnownHostsFile /dev/null", "StrictHostKeyChecking yes"]
    (folder / "config").write_text("".join(f"{line}\n" for line in lines))
    (folder / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nPidFile none\nUsePAM no\nStrictModes no\n"
        "PasswordAuthentication yes\nPermitRootLogin yes\nLogLevel VERBOSE\nSubsystem sftp internal-sftp\n"
    )
    return SshServer(port, root, folder / "config", folder / "key", folder / "log")


def _wait(made: SshServer, process: "subprocess.Popen[bytes]") -> None:
    until = time.monotonic() + START_S
    while "Server listening" not in made.log.read_text():
        assert process.poll() is None and time.monotonic() < until, made.log.read_text()
        time.sleep(0.05)
