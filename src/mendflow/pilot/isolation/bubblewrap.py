"""The command line of bubblewrap: a job sees the system's programs, to be read, and its own folder, to be written.

It has processes of its own, so it sees and reaches no others; and of the file system neither a home, nor the pilot's
work folder, nor a server's data folder, nor the temporary files of others."""

import os
import stat
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from mendflow.pilot.isolation.options import Isolation

SYSTEM: Final = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/opt",
    "/nix",
    "/cvmfs",
    "/sys",
)
DEVICES: Final = ("nvidia*", "kfd", "dri")
_FOR_PACKAGES: Final = ("site-packages", "dist-packages")
_SHARED: Final = frozenset({"/", "/usr", "/usr/local"})


def sandbox_words(
    isolation: Isolation,
    *,
    folder: str,
    temporary: str,
    writable: Sequence[str] = (),
    readable: Sequence[str] = (),
    work: str,
) -> list[str]:
    """What starts a program in a sandbox, in `folder`. `temporary` becomes /tmp, and the paths in `writable` and
    `readable` are where they are outside; `work` is the pilot's work folder."""
    words = ["bwrap", "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    words += ["--unshare-net"] if isolation.network == "none" else []
    words += ["--cap-drop", "ALL"]
    seen = [*_system(), *_installation(for_others=bool(isolation.jobs_as)), *isolation.shown]
    for path in dict.fromkeys(seen):
        words += _shown(path)
    words += ["--proc", "/proc", "--dev", "/dev", *_devices()]
    for path in dict.fromkeys((work, *isolation.hidden)):
        words += _hidden(path, seen)
    words += ["--bind", temporary, "/tmp", "--bind", temporary, "/var/tmp"]
    for path in dict.fromkeys(readable):
        words += ["--ro-bind", path, path]
    for path in dict.fromkeys((folder, *writable)):
        words += ["--bind", path, path]
    return [*words, "--remount-ro", "/", "--chdir", folder, "--"]


def _system() -> list[str]:
    names = os.path.realpath("/etc/resolv.conf")  # often a link to where a service writes it
    return [*SYSTEM, *([] if names.startswith("/etc/") else [names])]


def _installation(*, for_others: bool) -> list[str]:
    """Where Python, what is installed with it, and this package are; `for_others`: as far as other accounts get
    there."""
    package = str(Path(__file__).absolute().parents[3])
    installed = [place for place in sys.path if os.path.basename(place) in _FOR_PACKAGES]
    places = (sys.prefix, sys.base_prefix, sys.exec_prefix, *installed, package)
    return [place for place in places if place not in _SHARED and (not for_others or _lets_pass(place))]


def _lets_pass(place: str) -> bool:
    try:
        return all(os.stat(path).st_mode & stat.S_IXOTH for path in (place, *map(str, Path(place).parents)))
    except OSError:
        return False


def _shown(path: str) -> list[str]:
    if os.path.islink(path):
        return ["--symlink", os.readlink(path), path]
    return ["--ro-bind", path, path] if os.path.exists(path) else []


def _hidden(path: str, seen: Iterable[str]) -> list[str]:
    """What covers a path, if it would be seen otherwise."""
    real = os.path.realpath(path)
    if not os.path.exists(real) or not any(real == top or real.startswith(top.rstrip("/") + "/") for top in seen):
        return []
    return ["--tmpfs", real] if os.path.isdir(real) else ["--ro-bind", os.devnull, real]


def _devices() -> list[str]:
    """The graphics processors of the machine: which of them a job uses is said by a variable, as without a sandbox."""
    found = sorted(str(path) for pattern in DEVICES for path in Path("/dev").glob(pattern))
    return [word for path in found for word in ("--dev-bind", path, path)]
