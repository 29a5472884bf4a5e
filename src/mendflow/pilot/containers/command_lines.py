"""The command lines of apptainer, podman and docker: to run a job, to look for, fetch and remove.

A job in a container is to be as one outside: its folder at the same path, its user, the machine's processes (so that
signals, limits and measures work as ever), its shared memory and its network. Of other jobs it has no files. No value
of a variable stands on a command line, where everybody could read it. podman and docker are not told the values at
all, since they keep what they are told, show it to whoever inspects the container, and would heed some themselves: the
job's first shell sets them."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from mendflow.core.model.containers import OF_APPTAINER, RUNTIMES, reference_of
from mendflow.pilot.agent.devices import AMD, NVIDIA
from mendflow.pilot.containers.start import ContainerStart

APPTAINER: Final = RUNTIMES[0]
PODMAN: Final = RUNTIMES[1]
LABEL: Final = "mendflow."
TAG: Final = "MENDFLOW_PILOT"
"""By this variable the processes of a pilot are found: the first one of a container has it from its start."""

KEPT_BY_SHELLS: Final = (
    "UID",
    "EUID",
    "PPID",
    "IFS",
    "OPTIND",
    "SHELLOPTS",
    "BASHOPTS",
    "BASH_VERSINFO",
)
"""Variables that a shell cannot set for the job, or would heed itself when it did."""

APPTAINER_ENV: Final = ("APPTAINERENV_", "SINGULARITYENV_")
AMD_DEVICES: Final = ("/dev/kfd", "/dev/dri")


class JobProcess(NamedTuple):
    """A job's command inside: its program and arguments, its folder, what is mounted beside it, its variables, the
    GPUs that it was given, whose process it is to be, and whether root starts it for somebody else."""

    words: Sequence[str]
    folder: str
    beside: Sequence[str]
    env: Mapping[str, str]
    devices: str = ""
    uid: int = 0
    gid: int = 0
    groups: Sequence[int] = ()
    by_root: bool = False


class CommandLine(NamedTuple):
    """The words of a command, what it needs in its environment, and the variables that the first shell inside is to
    set."""

    words: list[str]
    env: dict[str, str]
    inside: dict[str, str]


def run_line(start: ContainerStart, job: JobProcess, *, name: str, labels: Mapping[str, str]) -> CommandLine:
    """What runs a job in its container."""
    return _apptainer_run(start, job) if start.kind == APPTAINER else _oci_run(start, job, name, labels)


def image_line(kind: str, command: Sequence[str], image: str) -> list[str]:
    """What prints the id of an image that the machine has. (Apptainer has files.)"""
    assert kind != APPTAINER, "images of apptainer are files"
    return [*command, "image", "inspect", "--format", "{{.Id}}", reference_of(image)]


def pull_line(kind: str, command: Sequence[str], image: str, file: str = "") -> list[str]:
    """What fetches an image; that of apptainer goes to a file."""
    if kind != APPTAINER:
        return [*command, "pull", "--quiet", reference_of(image)]
    source = image if image.startswith(OF_APPTAINER) else f"docker://{reference_of(image)}"
    return [*command, "pull", "--force", file, source]


def remove_line(kind: str, command: Sequence[str], name: str) -> list[str]:
    """What ends and removes a container, if there is one; empty if nothing of it can be left."""
    if kind == APPTAINER:
        return []
    ignore = ["--ignore"] if kind == PODMAN else []  # docker with --force ignores by itself
    return [*command, "rm", "--force", *ignore, "--volumes", name]


def _oci_run(start: ContainerStart, job: JobProcess, name: str, labels: Mapping[str, str]) -> CommandLine:
    entry, *arguments = job.words
    words = [*start.command, "run", "--rm", "--name", name, "--pull=never", "--entrypoint", entry]
    words += [
        "--workdir",
        job.folder,
        "--pid=host",
        "--ipc=host",
        f"--network={start.network or 'host'}",
    ]
    words += ["--log-driver=none", "--stop-timeout=0", "--security-opt=label=disable"]
    words += ["--security-opt=no-new-privileges"] if job.uid else []
    words += _user(start.kind, job)
    own = [(path, path, False) for path in (job.folder, *job.beside)]
    for source, target, read_only in (*own, *start.mounts):
        words.append(f"--mount=type=bind,source={source},target={target}{',readonly' if read_only else ''}")
    words += [f"--label={LABEL}{key}={value}" for key, value in labels.items()]
    env = _seen_devices(job)
    by_name = {name: value for name, value in env.items() if not _is_set_inside(name)}
    words += [f"--env={name}" for name in sorted(by_name)]
    words += [*_oci_devices(start.kind, job), *start.extra, *start.options, start.image, *arguments]
    return CommandLine(words, by_name, {name: value for name, value in env.items() if name not in by_name})


def _is_set_inside(variable: str) -> bool:
    return variable.isascii() and variable.isidentifier() and variable not in (TAG, *KEPT_BY_SHELLS)


def _user(kind: str, job: JobProcess) -> list[str]:
    """Files that it makes belong to the pilot's user."""
    user = [f"--user={job.uid}:{job.gid}"]
    if kind == PODMAN:
        return ["--userns=keep-id", *user] if job.uid and not job.by_root else user
    return user + [f"--group-add={group}" for group in job.groups if group != job.gid] if job.uid else user


def _oci_devices(kind: str, job: JobProcess) -> list[str]:
    if not job.devices:
        return []
    if AMD in job.env:
        return [f"--device={device}" for device in AMD_DEVICES]
    if kind == PODMAN:
        return [f"--device=nvidia.com/gpu={device}" for device in job.devices.split(",")]
    return ["--gpus", f'"device={job.devices}"']


def _seen_devices(job: JobProcess) -> dict[str, str]:
    """The variables of a job, with its GPUs as it sees them: of NVIDIA only those that it was given are there, counted
    from 0 on."""
    env, devices = dict(job.env), job.devices.split(",")
    if job.devices and NVIDIA in env and all(device.isdecimal() for device in devices):
        env[NVIDIA] = ",".join(str(number) for number in range(len(devices)))
    return env


def _apptainer_run(start: ContainerStart, job: JobProcess) -> CommandLine:
    words = [*start.command, "--quiet", "exec", "--cleanenv", "--home", job.folder, "--pwd", job.folder]
    for path in (job.folder, *job.beside):
        words += ["--bind", f"{path}:{path}"]
    for source, target, read_only in start.mounts:
        words += ["--bind", f"{source}:{target}{':ro' if read_only else ''}"]
    if start.network not in ("", "host"):
        words += ["--net", "--network", start.network]
    if job.devices:
        words.append("--rocm" if AMD in job.env else "--nv")
    words += [*start.extra, *start.options, start.image, *job.words]
    env = {prefix + variable: value for variable, value in job.env.items() for prefix in APPTAINER_ENV}
    return CommandLine(words, {name: value for name, value in env.items() if not name.endswith("ENV_HOME")}, {})
