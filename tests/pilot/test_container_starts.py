"""A container that did not start: whose fault it is, what is said of it, and when the machine is asked again."""

import socket
from pathlib import Path

import msgspec
import pytest

from mendflow.core.model.containers import JobContainer
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.ids import JobId
from mendflow.core.model.jobs import Limits, Outcome
from mendflow.pilot.containers.images import ImageStore
from mendflow.pilot.containers.pilot_containers import PilotContainers
from mendflow.pilot.containers.recent_start_faults import IN_A_ROW, REMEMBERED_S, RecentStartFaults
from mendflow.pilot.containers.runtime import ContainerOptions, ContainerRuntime
from mendflow.pilot.containers.start import ContainerRefused, ContainerStart
from mendflow.pilot.slot.container_command import ContainerCommand
from mendflow.pilot.slot.messages import SlotWork
from tests.pilot.test_containers import NIL, calls, program

RUNC = "Error: /usr/sbin/runc: runc create failed: unable to start container process: "


def fault_of(
    folder: Path,
    code: int,
    printed: str,
    *,
    kind: str = "podman",
    options: tuple[str, ...] = (),
    extra: str = "",
    network: str = "",
) -> Fault:
    given = tuple(extra.split())
    start = ContainerStart(
        kind, (kind,), "0123456789abcdef", "sha256:0123", str(folder), given, options=options, network=network
    )
    work = SlotWork(JobId("c/1"), 1, "c", "a", "true", NIL, "", "", {}, {}, False, 0, 0, Limits())
    fault = ContainerCommand(work, start, str(folder / "a"), "p-1").start_fault(code << 8, printed)
    assert fault is not None
    return fault


@pytest.mark.parametrize(
    ("code", "printed", "advice"),
    [
        (126, "Error: crun: setrlimit `RLIMIT_NOFILE`: Operation not permitted: OCI permission denied", "--ulimit"),
        (
            126,
            f"{RUNC}error during container init: error setting rlimits for ready process: error setting rlimit type 7:"
            " operation not permitted: OCI permission denied",
            'MENDFLOW_CONTAINER_OPTIONS="--ulimit nofile=1024:1024 --ulimit nproc=1024:1024"',
        ),
        (
            126,
            "Error: OCI runtime error: crun: cgroups in hybrid mode not supported, drop all controllers from cgroupv2",
            'MENDFLOW_CONTAINER_COMMAND="podman --runtime runc"',
        ),
        (126, f"{RUNC}mkdir /sys/fs/cgroup/memory/x: read-only file system", "delegate control groups"),
        (125, "Error: no valid executable found for OCI runtime /usr/sbin/norun: invalid argument", "install"),
        (125, "cannot clone: Operation not permitted\nError: cannot re-exec process", "user namespaces"),
        (
            125,
            'Error: database storage graph driver "vfs" does not match our storage graph driver "overlay": database'
            " configuration mismatch",
            "--storage-driver",
        ),
        (126, "docker: permission denied while trying to connect to the Docker daemon socket", "group docker"),
    ],
)
def test_a_machine_that_cannot_start_containers_is_told_of_with_what_helps(  # DU-5
    tmp_path: Path, code: int, printed: str, advice: str
) -> None:
    fault = fault_of(tmp_path, code, printed)
    assert (fault.name, fault.category, fault.lasting) == ("containerNotStarted", Category.RESOURCE, True)
    assert fault.message.startswith(f"{socket.gethostname()} cannot start containers: podman said: ")
    assert printed.splitlines()[-1].removeprefix("Error: ")[-60:] in fault.message
    assert advice in fault.message.partition("Why, and what helps: ")[2] and fault.exit_code == code


@pytest.mark.parametrize(
    ("printed", "advice"),
    [
        ("Error: setting up CDI devices: unresolvable CDI devices nvidia.com/gpu=0", "nvidia-ctk"),
        ("Error: unable to find network with name or ID nonet: network not found", "podman network create"),
    ],
)
def test_what_only_one_job_asks_for_and_its_machine_lacks_says_nothing_of_other_jobs(  # DU-5
    tmp_path: Path, printed: str, advice: str
) -> None:
    fault = fault_of(tmp_path, 125, printed)
    assert fault.category is Category.RESOURCE and fault.lasting and advice in fault.message
    recent = RecentStartFaults()
    recent.judged(raw(fault))
    assert recent.refusal() is None


@pytest.mark.parametrize(
    ("options", "network", "printed"),
    [
        (("--ulimit", "nofile=999999"), "", "Error: crun: setrlimit `RLIMIT_NOFILE`: Operation not permitted"),
        (("--cgroup-parent=/elsewhere",), "", "Error: crun: mkdir /sys/fs/cgroup/x: permission denied"),
        (("--userns=auto",), "", "Error: insufficient UIDs or GIDs available in user namespace"),
        ((), "mine", 'Error: could not find "netavark" in one of /usr/libexec/podman'),
    ],
)
def test_one_job_that_asks_for_more_does_not_keep_others_from_their_containers(  # DU-5
    tmp_path: Path, options: tuple[str, ...], network: str, printed: str
) -> None:
    fault = fault_of(tmp_path, 126, printed, options=options, network=network)
    assert fault.lasting and "cannot start this container" in fault.message and "job's own container" in fault.message
    recent = RecentStartFaults()
    for _ in range(IN_A_ROW):
        recent.judged(raw(fault))
    assert recent.refusal() is None
    assert not read(recent.judged(raw(fault_of(tmp_path, 125, "Error: it is busy")))).lasting


@pytest.mark.parametrize(
    ("options", "printed"),
    [
        (("--runtime=foo",), 'Error: default OCI runtime "foo" not found: invalid argument'),
        (("--runtime", "foo"), "Error: no valid executable found for OCI runtime foo: invalid argument"),
        (("--userns=private",), "Error: cannot clone: --userns and --pod cannot be set together"),
    ],
)
def test_what_the_program_says_of_an_option_of_the_job_is_the_jobs_fault(  # DU-5
    tmp_path: Path, options: tuple[str, ...], printed: str
) -> None:
    fault = fault_of(tmp_path, 125, printed, options=options)
    assert (fault.name, fault.category) == ("containerUnusable", Category.INPUT) and "`options`" in fault.message


@pytest.mark.parametrize(
    ("kind", "code", "printed", "advice"),
    [
        ("podman", 127, f'{RUNC}exec: "/bin/sh": stat /bin/sh: no such file or directory', "/bin/sh"),
        ("podman", 127, "Error: crun: executable file `/bin/sh` not found in $PATH: No such file", "/bin/sh"),
        ("apptainer", 255, "FATAL:   stat /bin/sh: no such file or directory", "/bin/sh"),
        ("podman", 126, f"{RUNC}exec /bin/sh: exec format error", "another processor"),
        ("podman", 125, "Error: unknown flag: --bogus\nSee 'podman run --help'", "`options`"),
    ],
)
def test_an_image_that_cannot_run_the_job_is_a_fault_of_the_job(  # DU-5
    tmp_path: Path, kind: str, code: int, printed: str, advice: str
) -> None:
    fault = fault_of(tmp_path, code, printed, kind=kind, options=("--bogus",) if "bogus" in printed else ())
    assert (fault.name, fault.category) == ("containerUnusable", Category.INPUT)
    assert advice in fault.message.partition("Why, and what helps: ")[2] and "manual" not in fault.message
    assert "See 'podman" not in fault.message, "the line that tells why, not the hint behind it"


def test_an_option_of_the_pilot_that_is_wrong_is_not_the_jobs_fault(tmp_path: Path) -> None:  # DU-5
    fault = fault_of(tmp_path, 125, "Error: unknown flag: --bogus\nSee 'podman run --help'", extra="--bogus")
    assert fault.category is Category.RESOURCE and fault.lasting
    assert "--container-options: --bogus" in fault.message


@pytest.mark.parametrize(("kind", "code"), [("podman", 125), ("docker", 125), ("apptainer", 255)])
def test_what_may_pass_is_the_machines_and_is_tried_again(tmp_path: Path, kind: str, code: int) -> None:  # DU-5
    fault = fault_of(tmp_path, code, "Error: something went wrong: device or resource busy", kind=kind)
    assert (fault.name, fault.category, fault.lasting) == ("containerNotStarted", Category.RESOURCE, False)
    assert "device or resource busy" in fault.message and f"pilot's user: {kind} " in fault.message


def raw(fault: Fault | None) -> msgspec.Raw:
    return msgspec.Raw(msgspec.msgpack.encode(Outcome(fault=fault)))


def read(outcome: msgspec.Raw) -> Fault:
    fault = msgspec.msgpack.decode(outcome, type=Outcome).fault
    assert fault is not None
    return fault


def test_a_machine_that_cannot_start_containers_is_not_asked_again_at_once(tmp_path: Path) -> None:  # DU-5
    now = [0.0]
    recent = RecentStartFaults(clock=lambda: now[0])
    assert recent.refusal() is None
    lasting = fault_of(tmp_path, 126, "Error: crun: cgroups in hybrid mode not supported")
    recent.judged(raw(lasting))
    refused = recent.refusal()
    assert refused is not None and refused.message == lasting.message
    now[0] = REMEMBERED_S + 1
    assert recent.refusal() is None, "somebody may have changed the machine"
    recent.judged(raw(lasting))
    recent.judged(raw(None))
    assert recent.refusal() is None, "one has started"


def test_several_failures_in_a_row_count_as_lasting(tmp_path: Path) -> None:  # DU-5
    recent, fault = RecentStartFaults(), fault_of(tmp_path, 125, "Error: something went wrong")
    judged = [read(recent.judged(raw(fault))) for _ in range(IN_A_ROW)]
    assert [each.lasting for each in judged] == [False, False, True]
    assert "something went wrong" in judged[-1].message and "3 in a row" in judged[-1].message
    recent.judged(raw(None))
    assert not read(recent.judged(raw(fault))).lasting, "a container has started since"


@pytest.mark.parametrize(("options", "network"), [(("--device", "/dev/fuse"), ""), ((), "mine")])
def test_what_one_job_asks_for_does_not_count_against_the_machine(  # SE-3, DU-5
    tmp_path: Path, options: tuple[str, ...], network: str
) -> None:
    recent, printed = RecentStartFaults(), "Error: something went wrong"
    own = fault_of(tmp_path, 125, printed, options=options, network=network)
    assert not own.lasting
    for _ in range(IN_A_ROW + 1):
        assert not read(recent.judged(raw(own))).lasting, "it may be due to what this job alone asks for"
    usual = fault_of(tmp_path, 125, printed)
    judged = [read(recent.judged(raw(each))) for each in (usual, own, usual, usual)]
    assert [each.lasting for each in judged] == [False, False, False, True]


async def test_a_pilot_tells_jobs_with_containers_what_it_has_just_seen(tmp_path: Path) -> None:  # DU-5
    runtime = ContainerRuntime("podman", (program(tmp_path, "podman", "echo 0123"),))
    containers = PilotContainers(runtime, ContainerOptions(), tmp_path / "cache")
    wanted = JobContainer(image="tools:1")
    assert (await containers.images.find(wanted)).image == "0123"
    containers.judged(raw(fault_of(tmp_path, 126, "Error: crun: cgroups in hybrid mode not supported")))
    with pytest.raises(ContainerRefused, match="cannot start containers: podman said: crun: cgroups in hybrid mode"):
        containers.images.known(wanted)
    assert len(calls(tmp_path, "image")) == 1


@pytest.mark.parametrize("image", ["localhost/tool:1", "docker://localhost/tool:1"])
async def test_an_image_of_the_machine_that_is_not_there_is_missing_whatever_the_registry_says(  # DU-5
    tmp_path: Path, image: str
) -> None:
    said = "Error: pinging container registry localhost: dial tcp 127.0.0.1:443: connect: connection refused"
    runtime = ContainerRuntime("podman", (program(tmp_path, "podman", f"echo '{said}' >&2; exit 125"),))
    with pytest.raises(ContainerRefused) as refused:
        await ImageStore(runtime, ContainerOptions(), tmp_path / "cache").find(JobContainer(image=image))
    fault = refused.value.fault
    assert fault.name == "imageMissing" and fault.lasting
    assert f"the image {image} is not on {socket.gethostname()}" in fault.message
    assert "podman build -t localhost/tool:1" in fault.message and "podman load -i FILE" in fault.message


async def test_a_program_that_cannot_work_here_is_not_taken_for_an_image_that_is_missing(
    tmp_path: Path,
) -> None:  # DU-5
    said = "permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock"
    runtime = ContainerRuntime("docker", (program(tmp_path, "docker", f"echo '{said}' >&2; exit 1"),))
    with pytest.raises(ContainerRefused) as refused:
        await ImageStore(runtime, ContainerOptions(), tmp_path / "cache").find(JobContainer(image="tools:1"))
    fault = refused.value.fault
    assert (fault.name, fault.lasting) == ("containerNotStarted", True) and "group docker" in fault.message


@pytest.mark.parametrize(
    ("said", "name"),
    [
        (
            "Error: initializing source docker://registry.x/tools/unshare:1: reading manifest 1: manifest unknown",
            "Missing",
        ),
        (
            "Error: initializing source docker://registry.x/tools/unshare:1: pinging registry: i/o timeout",
            "Unavailable",
        ),
        ("Error: registry.x/etc/subuid:1: connection refused", "Unavailable"),
    ],
)
async def test_words_in_the_name_of_an_image_say_nothing_of_the_machine(  # DU-5
    tmp_path: Path, said: str, name: str
) -> None:
    image = "registry.x/etc/subuid:1" if "subuid" in said else "registry.x/tools/unshare:1"
    runtime = ContainerRuntime("podman", (program(tmp_path, "podman", f"echo '{said}' >&2; exit 125"),))
    with pytest.raises(ContainerRefused) as refused:
        await ImageStore(runtime, ContainerOptions(), tmp_path / "cache").find(JobContainer(image=image))
    assert refused.value.fault.name == f"image{name}"


@pytest.mark.parametrize(
    "said",
    [
        "Error: user namespaces are not enabled in /proc/sys/user/max_user_namespaces",
        "ERROR: Failed to create user namespace: maximum number of user namespaces exceeded",
        "Error during unshare(CLONE_NEWUSER): Operation not permitted",
        "unshare: operation not permitted",
        "cannot clone: Operation not permitted",
    ],
)
def test_missing_user_namespaces_are_known_by_whole_phrases(tmp_path: Path, said: str) -> None:  # DU-5
    fault = fault_of(tmp_path, 125, said)
    assert fault.lasting and "user namespaces" in fault.message.partition("Why, and what helps: ")[2]
    assert not fault_of(tmp_path, 125, "Error: the volume unshare of the user namespace-tools is busy").lasting
