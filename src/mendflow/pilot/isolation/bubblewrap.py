"""The command line of bubblewrap: a job sees the system's programs, to be read, and its own folder, to be written.

It has processes of its own, so it sees and reaches no others; and of the file system neither a home, nor the pilot's
work folder, nor a server's data folder, nor the temporary files of others."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from mendflow.pilot.isolation.installation import installation
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
    for path in _system():
        words += _shown(path)
    words += ["--proc", "/proc", "--dev", "/dev", *_devices()]
    words += ["--bind", temporary, "/tmp", "--bind", temporary, "/var/tmp"]  # what is shown may be in there
    for path in dict.fromkeys(isolation.shown):
        words += _shown(path)
    python = installation(for_others=bool(isolation.jobs_as))
    python = {path: real for path, real in python.items() if not _is_below(path, (*SYSTEM, *isolation.shown))}
    for path, real in python.items():
        words += ["--ro-bind", real, path]
    seen = {
        path: os.path.realpath(path) for path in (*_system(), *isolation.shown) if not os.path.islink(path)
    } | python
    for path in dict.fromkeys((work, *isolation.hidden)):
        words += _hidden(path, seen)
    for path in dict.fromkeys(readable):
        words += ["--ro-bind", path, path]
    for path in dict.fromkeys((folder, *writable)):
        words += ["--bind", path, path]
    return [*words, "--remount-ro", "/", "--chdir", folder, "--"]


def _system() -> list[str]:
    names = os.path.realpath("/etc/resolv.conf")  # often a link to where a service writes it
    return [*SYSTEM, *([] if names.startswith("/etc/") else [names])]


def _is_below(path: str, tops: Iterable[str]) -> bool:
    return any(path == top or path.startswith(top.rstrip("/") + "/") for top in tops)


def _shown(path: str) -> list[str]:
    if os.path.islink(path):
        return ["--symlink", os.readlink(path), path]
    return ["--ro-bind", path, path] if os.path.exists(path) else []


def _hidden(path: str, seen: Mapping[str, str]) -> list[str]:
    """What covers a path wherever it would be seen otherwise. `seen` are the places that are shown, and what is shown
    there, which is something else where the way to a place leads over links."""
    real = os.path.realpath(path)
    if not os.path.exists(real):
        return []
    words = []
    for place in dict.fromkeys(
        top.rstrip("/") + real[len(whole.rstrip("/")) :] for top, whole in seen.items() if _is_below(real, (whole,))
    ):
        words += ["--tmpfs", place] if os.path.isdir(real) else ["--ro-bind", os.devnull, place]
    return words


def _devices() -> list[str]:
    """The graphics processors of the machine: which of them a job uses is said by a variable, as without a sandbox."""
    found = sorted(str(path) for pattern in DEVICES for path in Path("/dev").glob(pattern))
    return [word for path in found for word in ("--dev-bind", path, path)]
