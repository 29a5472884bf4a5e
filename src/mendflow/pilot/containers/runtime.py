"""Which program runs containers here: what the pilot's options say, or the first that the machine has.

Nothing is started to find that out, since most pilots run no containers: a program on the PATH counts, and of docker a
socket that somebody listens on."""

import os
import pwd
import shlex
import shutil
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from mendflow.core.model.containers import RUNTIMES
from mendflow.core.model.errors import InvalidRequest

AUTO: Final = "auto"
NO_RUNTIME: Final = "none"
ANY: Final = "any"
NOTHING: Final = "none"
SINGULARITY: Final = "singularity"
DOCKER_SOCKET: Final = "/var/run/docker.sock"
SOCKET_S: Final = 0.5
PREFIX: Final = "MENDFLOW_CONTAINER_"


class ContainerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The pilot's options for containers, as texts. `runtime` is `auto`, `none` or one of RUNTIMES; `command` starts
    the program, with options of its own; `options` are added to each `run`. `cache` is the folder for images that
    Apptainer fetches, and for notes of what runs. `mounts` and `flags` bound what jobs may ask for: `any`, `none`, or
    paths separated by `:`, and options separated by commas."""

    runtime: str = AUTO
    command: str = ""
    options: str = ""
    cache: str = ""
    mounts: str = ANY
    flags: str = NOTHING

    def allows_mount(self, path: str) -> bool:
        """Whether a job may mount this path, with all links in it followed."""
        if self.mounts in (ANY, NOTHING):
            return self.mounts == ANY
        return bool(self._roots_of(path))

    def _roots_of(self, path: str) -> list[str]:
        """The allowed paths that this one is, or lies below."""
        allowed = [os.path.realpath(each) for each in self.mounts.split(":") if each]
        return [each for each in allowed if path == each or path.startswith(f"{each.rstrip('/')}/")]

    def may_be_swapped(self, path: str, *, own_accounts: bool) -> bool:
        """Whether a job could put a link in place of a folder between what is allowed and this path, after it was
        looked at: runtimes follow links. `own_accounts`: jobs have other accounts than the pilot."""
        if self.mounts in (ANY, NOTHING):
            return False
        return not any(_is_steady(each, path, own_accounts) for each in self._roots_of(path))

    def refused_flag(self, options: tuple[str, ...]) -> str:
        """The first option that a job may not ask for; empty if it may ask for all. A word without a dash is the value
        of the option before it."""
        if self.flags == ANY:
            return ""
        allowed = set() if self.flags == NOTHING else {each.strip() for each in self.flags.split(",")}
        allowed_before = False
        for word in options:
            if word.startswith("-"):
                allowed_before = word.partition("=")[0] in allowed
            if not allowed_before:
                return word
        return ""


def _is_steady(root: str, path: str, own_accounts: bool) -> bool:
    """Whether no job can change a folder on the way from `root` to what is below it."""
    way = root
    for part in [] if path == root else os.path.relpath(path, root).split(os.sep):
        try:
            folder = os.lstat(way)
        except OSError:
            return False
        pilots = folder.st_uid in (0, os.geteuid()) if own_accounts else folder.st_uid != os.geteuid() != 0
        if not pilots or folder.st_mode & 0o022:
            return False
        way = os.path.join(way, part)
    return True


class ContainerRuntime(msgspec.Struct, frozen=True):
    """The runtime of a pilot: which one it is, the words that start it, and options for each `run`."""

    kind: str
    command: tuple[str, ...]
    extra: tuple[str, ...] = ()


def options_from(environment: Mapping[str, str]) -> ContainerOptions:
    """What the environment says where no option does."""
    given = {name: environment.get(PREFIX + name.upper(), "") for name in ContainerOptions.__struct_fields__}
    return ContainerOptions(**{name: text for name, text in given.items() if text})


def cache_folder(options: ContainerOptions, environment: Mapping[str, str], work: Path) -> Path:
    """The folder for images and notes: the one of the options, else one of the user's home folder, else one in the
    pilot's work folder. Never one in a folder where others can write."""
    if options.cache:
        return Path(options.cache).absolute()
    home = environment.get("HOME") or _home_of_user()
    base = environment.get("XDG_CACHE_HOME") or (os.path.join(home, ".cache") if home else "")
    return Path(base).absolute() / "mendflow" / "containers" if base else work.absolute() / "cache.containers"


def _home_of_user() -> str:
    """The home folder that the machine knows for this user; empty if it has none of its own."""
    try:
        home = pwd.getpwuid(os.getuid()).pw_dir
        return home if home and os.stat(home).st_uid == os.getuid() and home != "/" else ""
    except (KeyError, OSError):
        return ""


def notes_folder(cache: Path) -> Path:
    """Where it is noted which containers run on this host."""
    return cache / "running" / socket.gethostname()


def find_runtime(options: ContainerOptions, environment: Mapping[str, str]) -> ContainerRuntime | None:
    """The runtime of a pilot with these options. Raises InvalidRequest if they ask for one that is not here."""
    if options.runtime not in (AUTO, NO_RUNTIME, SINGULARITY, *RUNTIMES):
        raise InvalidRequest(
            f"{options.runtime!r:.80} is no runtime of containers; there are {', '.join((AUTO, NO_RUNTIME, *RUNTIMES))}"
        )
    if options.runtime == NO_RUNTIME:
        return None
    extra = _words(options.options, "options")
    if options.command:
        return _given_runtime(options, extra, environment)
    wanted = RUNTIMES[0] if options.runtime == SINGULARITY else options.runtime
    for kind in RUNTIMES if wanted == AUTO else (wanted,):
        if program := _program(kind, environment, needed=wanted != AUTO):
            return ContainerRuntime(kind, (program,), extra)
    if options.runtime == AUTO:
        return None
    raise InvalidRequest(f"there is no {options.runtime} on the PATH of this pilot: install it, or choose another")


def _given_runtime(
    options: ContainerOptions, extra: tuple[str, ...], environment: Mapping[str, str]
) -> ContainerRuntime:
    words = _words(options.command, "command")
    program = shutil.which(words[0], path=environment.get("PATH", os.defpath))
    if program is None:
        raise InvalidRequest(f"the program for containers, {words[0]:.200}, is not found, or cannot be executed")
    kind = options.runtime if options.runtime in RUNTIMES else _kind_of(words[0])
    if not kind:
        raise InvalidRequest(
            f"it cannot be told which runtime {words[0]:.200} is: say --container-runtime {', '.join(RUNTIMES)}"
        )
    return ContainerRuntime(kind, (program, *words[1:]), extra)


def _kind_of(program: str) -> str:
    name = os.path.basename(program)
    if SINGULARITY in name:
        return RUNTIMES[0]
    return next((kind for kind in RUNTIMES if kind in name), "")


def _words(text: str, name: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise InvalidRequest(f"--container-{name} cannot be taken apart into words: {error}") from None


def _program(kind: str, environment: Mapping[str, str], *, needed: bool) -> str:
    path = environment.get("PATH", os.defpath)
    if kind == RUNTIMES[0]:
        return shutil.which(kind, path=path) or shutil.which(SINGULARITY, path=path) or ""
    found = shutil.which(kind, path=path) or ""
    if kind == "docker" and found and not needed and not _answers(environment.get("DOCKER_HOST", "")):
        return ""
    return found


def _answers(address: str) -> bool:
    """Whether somebody listens where docker would connect to; an address of another machine counts as answering."""
    if address and not address.startswith("unix://"):
        return True
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(SOCKET_S)
        try:
            probe.connect(address.removeprefix("unix://") or DOCKER_SOCKET)
        except OSError:
            return False
    return True
