"""Why a container did not start: whose fault it is, and what helps.

What the program for containers prints before the job's first shell has begun is its own. Three kinds are told apart.
The job's: its image lacks a shell, is for another processor, or the job asks for what the program does not know. The
machine's, known to last: it fails the same way until somebody changes something there, so the job is not tried there
again. And the machine's, of which that is not known: a server of docker may be back in a moment. Neither exit codes
alone (podman tells a limit that it may not set by 126, as it tells a shell that cannot be executed) nor messages alone
say which it is."""

import re
import socket
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from mendflow.core.model.containers import reference_of
from mendflow.core.model.faults import AttemptStage, Category, Fault
from mendflow.lazy import lazy_pattern
from mendflow.pilot.containers.start import ContainerStart

NOT_STARTED: Final = "containerNotStarted"
UNUSABLE: Final = "containerUnusable"
NOT_FOUND_CODE: Final = 127
SAID_START_CHARS: Final = 60
SAID_END_CHARS: Final = 180

OPTION_CHARS_MIN: Final = 3

LIMITS: Final = 'MENDFLOW_CONTAINER_OPTIONS="--ulimit nofile=1024:1024 --ulimit nproc=1024:1024"'


class MachineTrouble(NamedTuple):
    """What a program for containers says of its machine, and what to do about it. `of_all`: no container starts there,
    whatever the job asks for."""

    pattern: str
    advice: str
    of_all: bool = True


MACHINE_TROUBLES: Final = (
    MachineTrouble(
        r"set(?:ting )?rlimit.*operation not permitted",
        f"it may not set the limits that it gives to every container: start the pilot with {LIMITS}",
    ),
    MachineTrouble(
        r"cgroups? in hybrid mode|hybrid cgroup",
        "crun does not run where both versions of cgroups are in use: install runc and start the pilot with"
        ' MENDFLOW_CONTAINER_COMMAND="podman --runtime runc", or let the machine boot with version 2 alone',
    ),
    MachineTrouble(
        r"cgroup.*(?:not supported|permission denied|operation not permitted|read-only|no such file|not mounted)",
        "it may not make control groups there: use another runtime, as in"
        ' MENDFLOW_CONTAINER_COMMAND="podman --runtime runc", or let an administrator delegate control groups to the'
        " pilot's user",
    ),
    MachineTrouble(
        r"no valid executable found for oci runtime|default oci runtime .* not found|could not find a working conmon"
        r'|exec: "(?:runc|crun|conmon|pasta|slirp4netns|netavark)"|could not find "?(?:netavark|pasta|slirp4netns)',
        "a program that it needs is not installed: install what it names, or name another runtime, as in"
        ' MENDFLOW_CONTAINER_COMMAND="podman --runtime runc"',
    ),
    MachineTrouble(
        r"newuidmap|newgidmap|/etc/subuid|/etc/subgid|insufficient uids or gids"
        r"|user namespaces? (?:(?:is|are) )?(?:disabled|not (?:enabled|allowed|supported|available))"
        r"|(?:creat\w*|start\w*|enter\w*|join\w*|unshar\w*|clon\w*) (?:a |the |new )*user namespace"
        r"|cannot clone: \w|cannot re-exec process"
        r"|(?:failed to|cannot|could not|error during|while) unshar"
        r"|unshare(?:\([^)\s]*\))?: (?:operation|permission|no) ",
        "the pilot's user may not make user namespaces: an administrator allows it with usermod --add-subuids"
        " 100000-165535 --add-subgids 100000-165535 USER, and then the user says podman system migrate",
    ),
    MachineTrouble(
        r"permission denied.*docker(?:\.sock| daemon| api)|docker(?:\.sock| daemon).*permission denied",
        "the pilot's user may not use docker: an administrator adds the user to the group docker; or start the pilot"
        " with --container-runtime podman",
    ),
    MachineTrouble(
        r"graph driver .* does not match|database configuration mismatch|overlay.*not supported|driver not supported"
        r"|kernel does not support overlay",
        "its store of images cannot be used so: name the driver that fits, as in"
        ' MENDFLOW_CONTAINER_COMMAND="podman --storage-driver vfs"',
    ),
    MachineTrouble(
        r"unresolvable cdi devices|could not select device driver|nvidia-container-cli",
        "it does not know the GPUs of the machine: install the vendor's tools for containers there; for podman also"
        " nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml",
        of_all=False,
    ),
    MachineTrouble(
        r"unable to find network|network \S+ not found",
        "the job names a network that the machine does not have: make it there with podman network create NAME, or"
        " change `network`",
        of_all=False,
    ),
)
"""What is known to last. The first that fits tells what to do."""

_LACKS_SHELL: Final = lazy_pattern(
    r"command that was not found|/bin/sh[\"'`]?:? (?:not found|no such file)|stat /bin/sh: no such file"
    r"|executable file .*not found in \$path|no such file or directory.*/bin/sh"
)
_OTHER_PROCESSOR: Final = lazy_pattern(r"exec format error|cannot execute binary file")
_BAD_OPTION: Final = lazy_pattern(r"unknown (?:shorthand )?flag|unknown option|invalid argument|flag needs")
_TELLING: Final = lazy_pattern(r"\b(?:error|fatal)\b", re.IGNORECASE)
_HEAD: Final = lazy_pattern(r"^(?:(?:error|fatal|docker):\s*)+", re.IGNORECASE)


def machine_trouble(printed: str, image: str = "") -> MachineTrouble | None:
    """What a program for containers says of its machine, if that is known to last. The name of the image, which may
    have any words in it, is no part of that."""
    lower = printed.lower()
    for name in _names_of(image.lower()):
        lower = lower.replace(name, "")
    return next((each for each in MACHINE_TROUBLES if re.search(each.pattern, lower) is not None), None)


def machine_fault(
    kind: str,
    command: Sequence[str],
    printed: str,
    trouble: MachineTrouble,
    *,
    stage: AttemptStage,
    code: int | None = None,
) -> Fault:
    """The fault of a machine that cannot start containers, or not this one; `command` are the words that start the
    program there."""
    advice = trouble.advice.replace('COMMAND="podman ', f'COMMAND="{" ".join(command)} ')
    what = "cannot start containers" if trouble.of_all else "cannot start this container"
    said = f"{kind} said: {telling_line(printed)}"
    return Fault(
        name=NOT_STARTED,
        category=Category.RESOURCE,
        message=f"{socket.gethostname()} {what}: {said}. Why, and what helps: {advice}",
        exit_code=code,
        stage=stage,
        data={"runtime": kind, "lasting": True, "of_all": trouble.of_all},
    )


def start_fault(start: ContainerStart, code: int, printed: str) -> Fault:
    """Whose fault it is that the program ended with this exit code before the job's first shell began."""
    lower, said = printed.lower(), telling_line(printed) or f"exit code {code}"
    lacks_shell = _LACKS_SHELL.search(lower) is not None or (start.kind != "apptainer" and code == NOT_FOUND_CODE)
    bad_option = _BAD_OPTION.search(lower) is not None
    if _OTHER_PROCESSOR.search(lower) is not None:
        return _unusable(start, code, said, "it is for another processor: name one that is made for this machine's")
    trouble = machine_trouble(printed, start.image)
    if start.options and (_names_option(lower, start.options) or (trouble is None and bad_option)):
        return _unusable(start, code, said, "look at `options` of the job's container")
    if trouble is not None and _asks_for_more(start):
        advice = f"{trouble.advice}; or what the job's own container asks for is not to be had there"
        trouble = trouble._replace(advice=advice, of_all=False)
    if trouble is None and bad_option and start.extra:
        given = " ".join(start.extra)[:SAID_END_CHARS]
        trouble = MachineTrouble("", f"look at what the pilot was given with --container-options: {given}")
    if trouble is not None:
        return machine_fault(start.kind, start.command, printed, trouble, stage=AttemptStage.START, code=code)
    if lacks_shell:
        return _unusable(start, code, said, "it needs /bin/sh: name an image that has it")
    return _not_started(start, code, said)


def _names_of(image: str) -> Iterator[str]:
    """As programs for containers write the name of an image: whole, without its version, without its registry."""
    whole = reference_of(image)
    bare, _, last = whole.partition("@")[0].rpartition("/")
    bare = f"{bare}/{last.partition(':')[0]}" if bare else ""
    for name in (whole, bare):
        yield from (part for part in (name, name.partition("/")[2]) if name.startswith("/") or "/" in part)


def _asks_for_more(start: ContainerStart) -> bool:
    """Whether a job asks for more than every container has: that it gets none says nothing of those of others."""
    return bool(start.options or start.mounts) or start.network not in ("", "host")


def _names_option(said: str, options: Sequence[str]) -> bool:
    """Whether a program speaks of what the job itself gives it: the name of an option, or all that one is set to."""
    words = [word for option in options for word in option.lower().partition("=")[::2] if len(word) >= OPTION_CHARS_MIN]
    return any(re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", said) is not None for word in words)


def _unusable(start: ContainerStart, code: int, said: str, advice: str) -> Fault:
    what = f"the image {_image(start)} cannot run the job"
    return Fault(
        name=UNUSABLE,
        category=Category.INPUT,
        message=f"{what}: {start.kind} said: {said}. Why, and what helps: {advice}",
        exit_code=code,
        stage=AttemptStage.START,
        data={"runtime": start.kind, "image": start.image},
    )


def _not_started(start: ContainerStart, code: int, said: str) -> Fault:
    verb = "exec" if start.kind == "apptainer" else "run --rm"
    by_hand = " ".join([*start.command, verb, *start.extra, _image(start), "true"])
    host = socket.gethostname()
    return Fault(
        name=NOT_STARTED,
        category=Category.RESOURCE,
        message=f"{host} did not start the container: {start.kind} said: {said}. To see what helps, try it there, as"
        f" the pilot's user: {by_hand}",
        exit_code=code,
        stage=AttemptStage.START,
        data={"runtime": start.kind, "image": start.image, "of_all": not _asks_for_more(start)},
    )


def _image(start: ContainerStart) -> str:
    return start.image[:80] if start.kind == "apptainer" else start.image[:12]


def telling_line(printed: str) -> str:
    """The line that tells why a program for containers failed, without the word that begins it, short enough to be
    shown; behind it may be hints at its manual."""
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    told = next((line for line in reversed(lines) if _TELLING.search(line) is not None), lines[-1] if lines else "")
    return telling_part(_HEAD.sub("", told))


def telling_part(said: str) -> str:
    """A line of a program for containers, short enough to be shown: its cause stands at its end, behind addresses that
    are long."""
    if len(said) <= SAID_START_CHARS + SAID_END_CHARS:
        return said
    return f"{said[:SAID_START_CHARS]} ... {said[-SAID_END_CHARS:]}"
