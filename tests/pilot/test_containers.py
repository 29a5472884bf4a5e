"""A pilot's part in containers: which runtime it has, what it allows, and how images come to it."""

import asyncio
import os
import pwd
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import msgspec
import pytest

from mendflow.core.model.containers import JobContainer
from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.faults import Category
from mendflow.pilot.containers import images, start_faults
from mendflow.pilot.containers.images import ImageStore
from mendflow.pilot.containers.pilot_containers import PilotContainers
from mendflow.pilot.containers.records import container_name, make_notes_folder, remove_leftovers, write_note
from mendflow.pilot.containers.runtime import (
    ContainerOptions,
    ContainerRuntime,
    cache_folder,
    find_runtime,
    notes_folder,
    options_from,
)
from mendflow.pilot.containers.start import ContainerNotes, ContainerRefused, ContainerStart
from mendflow.pilot.files.work_folder import CONTAINER_NOTES
from mendflow.pilot.slot import guard
from tests.pilot.conftest import Pilot, Server

NIL = msgspec.Raw(b"\xc0")


def program(folder: Path, name: str, script: str = "exit 0") -> str:
    """A program that notes how it was called."""
    path = folder / name
    path.write_text(f'#!/bin/sh\necho "$*" >>{folder}/calls\n{script}\n')
    path.chmod(0o755)
    return str(path)


def calls(folder: Path, verb: str) -> list[str]:
    path = folder / "calls"
    return [line for line in path.read_text().splitlines() if verb in line.split()] if path.exists() else []


def test_the_first_runtime_on_the_path_is_taken(tmp_path: Path) -> None:  # DU-5
    path = {"PATH": str(tmp_path)}
    assert find_runtime(ContainerOptions(), path) is None
    podman = program(tmp_path, "podman")
    assert find_runtime(ContainerOptions(), path) == ContainerRuntime("podman", (podman,))
    singularity = program(tmp_path, "singularity")
    assert find_runtime(ContainerOptions(), path) == ContainerRuntime("apptainer", (singularity,))
    assert find_runtime(ContainerOptions(runtime="podman"), path) == ContainerRuntime("podman", (podman,))
    assert find_runtime(ContainerOptions(runtime="none"), path) is None


def test_docker_counts_only_if_somebody_answers(tmp_path: Path) -> None:  # DU-5
    docker = program(tmp_path, "docker")
    path = {"PATH": str(tmp_path), "DOCKER_HOST": f"unix://{tmp_path}/s"}
    assert find_runtime(ContainerOptions(), path) is None
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{tmp_path}/s")
        server.listen()
        assert find_runtime(ContainerOptions(), path) == ContainerRuntime("docker", (docker,))


def test_a_command_of_the_users_own_is_started_with_its_words(tmp_path: Path) -> None:  # DU-5
    own = program(tmp_path, "my-podman-4")
    options = options_from(
        {"MENDFLOW_CONTAINER_COMMAND": f"{own} --storage-driver vfs", "MENDFLOW_CONTAINER_OPTIONS": "--ulimit 'a b'"}
    )
    assert find_runtime(options, {}) == ContainerRuntime(
        "podman", (own, "--storage-driver", "vfs"), ("--ulimit", "a b")
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (ContainerOptions(runtime="rkt"), "is no runtime"),
        (ContainerOptions(runtime="podman"), "there is no podman"),
        (ContainerOptions(command="/no/such/podman"), "is not found"),
        (ContainerOptions(command="sh -c x"), "which runtime"),
        (ContainerOptions(options="'"), "cannot be taken apart"),
    ],
)
def test_options_that_cannot_be_are_refused(tmp_path: Path, options: ContainerOptions, said: str) -> None:
    program(tmp_path, "sh")
    with pytest.raises(InvalidRequest, match=said):
        find_runtime(options, {"PATH": str(tmp_path)})


def test_a_pilot_bounds_what_jobs_may_mount_and_ask_for(tmp_path: Path) -> None:  # DU-5
    (tmp_path / "data" / "in").mkdir(parents=True)
    (tmp_path / "data" / "way-out").symlink_to("/etc")
    store = ImageStore(
        ContainerRuntime("podman", ("true",)),
        ContainerOptions(mounts=f"{tmp_path}/data", flags="--shm-size,--ipc"),
        tmp_path,
        own_accounts=True,
    )
    inner = JobContainer(image="a:1", mounts=(f"{tmp_path}/data/in:/in",), options=("--shm-size", "1g", "--ipc=host"))
    assert store.known(inner) is None, "it is allowed, and must be looked for"
    for refused in (
        JobContainer(image="a:1", mounts=("/etc:/in",)),
        JobContainer(image="a:1", mounts=(f"{tmp_path}/data/way-out:/in",)),
        JobContainer(image="a:1", mounts=(f"{tmp_path}/data/none:/in",)),
        JobContainer(image="a:1", options=("--privileged",)),
        JobContainer(image="a:1", options=("1g",)),
    ):
        with pytest.raises(ContainerRefused) as error:
            store.known(refused)
        assert error.value.fault.name == "containerRefused" and error.value.fault.category is Category.INPUT


def test_what_a_job_could_replace_by_a_link_is_mounted_only_where_it_is_named_itself(tmp_path: Path) -> None:  # SE-2
    inner, deep = tmp_path / "data" / "in", tmp_path / "data" / "in" / "deep"
    deep.mkdir(parents=True)

    def refusal(mount: Path, allowed: Path, *, own_accounts: bool) -> str:
        options = ContainerOptions(mounts=str(allowed))
        store = ImageStore(ContainerRuntime("podman", ("true",)), options, tmp_path, own_accounts=own_accounts)
        try:
            store.known(JobContainer(image="a:1", mounts=(f"{mount}:/in",)))
        except ContainerRefused as error:
            return error.fault.message
        return ""

    assert not refusal(deep, tmp_path / "data", own_accounts=True), "no other account can change what is on the way"
    assert "put a link" in refusal(deep, tmp_path / "data", own_accounts=False), "jobs are who the folders belong to"
    inner.chmod(0o777)
    assert "put a link" in refusal(deep, tmp_path / "data", own_accounts=True)
    assert not refusal(inner, tmp_path / "data", own_accounts=True), "its own content may be changed"
    for own_accounts in (True, False):
        assert not refusal(deep, deep, own_accounts=own_accounts), "who allows it has named it"


async def test_an_image_is_fetched_once_for_many_jobs_of_two_pilots(tmp_path: Path) -> None:  # DU-5
    fetched = tmp_path / "fetched"
    script = f"""case "$1" in
image) test -e {fetched} && echo 0123 ;;
pull) sleep 0.3; touch {fetched} ;;
esac"""
    runtime = ContainerRuntime("podman", (program(tmp_path, "podman", script),))
    stores = [ImageStore(runtime, ContainerOptions(), tmp_path / "cache") for _ in range(2)]
    wanted = JobContainer(image="tools:1")
    found = await asyncio.gather(*(store.find(wanted) for store in stores for _ in range(25)))
    assert {each.image for each in found} == {"0123"} and {each.digest for each in found} == {"sha256:0123"}
    assert len(calls(tmp_path, "pull")) == 1
    assert stores[0].known(wanted) == found[0]


@pytest.mark.parametrize(
    ("said", "name", "category"),
    [
        ("manifest unknown", "imageMissing", Category.INPUT),
        ("dial tcp: i/o timeout", "imageUnavailable", Category.RESOURCE),
    ],
)
async def test_a_failed_pull_is_told_with_its_reason_and_not_repeated_by_those_that_waited(  # DU-5
    tmp_path: Path, said: str, name: str, category: Category
) -> None:
    runtime = ContainerRuntime("podman", (program(tmp_path, "podman", f"echo 'Error: {said}' >&2; exit 125"),))
    stores = [ImageStore(runtime, ContainerOptions(), tmp_path / "cache") for _ in range(2)]
    looks = [store.find(JobContainer(image="tools:1")) for store in stores for _ in range(10)]
    errors = await asyncio.gather(*looks, return_exceptions=True)
    faults = [error.fault for error in errors if isinstance(error, ContainerRefused)]
    assert len(faults) == 20 and {fault.name for fault in faults} == {name} and faults[0].category is category
    assert said in faults[0].message and "tools:1" in faults[0].message
    assert len(calls(tmp_path, "pull")) == 1


async def test_apptainer_fetches_into_the_cache_and_runs_files_as_they_are(tmp_path: Path) -> None:  # DU-5
    runtime = ContainerRuntime("apptainer", (program(tmp_path, "apptainer", 'echo content >"$3"'),))
    store = ImageStore(runtime, ContainerOptions(), tmp_path / "cache")
    first = await store.find(JobContainer(image="tools:1"))
    assert Path(first.image).parent == tmp_path / "cache" / "images" and first.digest.startswith("sha256:")
    own = tmp_path / "own.sif"
    own.write_text("content\n")
    second = await store.find(JobContainer(image=str(own)))
    assert (second.image, second.digest) == (str(own), first.digest)
    with pytest.raises(ContainerRefused, match=r"is not on .*there is no file"):
        await store.find(JobContainer(image="/no/such.sif"))
    assert len(calls(tmp_path, "pull")) == 1


async def test_a_pull_that_somebody_kills_is_made_again(tmp_path: Path) -> None:
    fetched = tmp_path / "fetched"
    script = f"""case "$1" in
image) test -e {fetched} && echo 0123 ;;
pull) test -e {fetched}.once || {{ touch {fetched}.once; kill -9 $$; }}; touch {fetched} ;;
esac"""
    runtime = ContainerRuntime("podman", (program(tmp_path, "podman", script),))
    store = ImageStore(runtime, ContainerOptions(), tmp_path / "cache")
    assert (await store.find(JobContainer(image="tools:1"))).image == "0123"
    assert len(calls(tmp_path, "pull")) == 2 <= images.KILLED_TRIES


def dead_note(start: ContainerStart, job: str) -> None:
    """A note of a slot that is dead."""
    child = os.fork()
    if child == 0:
        write_note(start, container_name("p", job, 1), pilot="p", job=job)
        os._exit(0)
    os.waitpid(child, 0)


def test_containers_of_dead_slots_are_removed_and_those_of_live_ones_are_not(tmp_path: Path) -> None:  # DU-5
    podman = program(tmp_path, "podman")
    folder = tmp_path / "notes"
    start = ContainerStart("podman", (podman,), "a", "", str(folder))
    assert make_notes_folder(str(folder)) == ""
    dead_note(start, "dead")
    write_note(start, container_name("p", "alive", 1), pilot="p", job="alive")
    assert remove_leftovers(ContainerNotes(str(folder), "podman", (podman,))) == []
    assert [line.split()[-1] for line in calls(tmp_path, "rm")] == [container_name("p", "dead", 1)]
    assert [path.stem for path in folder.iterdir()] == [container_name("p", "alive", 1)]


def test_a_guard_without_an_agent_stays_until_the_containers_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # DU-5
    """A runtime refuses to remove what it is just about to remove itself."""
    monkeypatch.setattr(guard, "IDLE_MS", 10)
    podman = program(tmp_path, "podman", f"test $(wc -l <{tmp_path}/calls) -ge 3")
    folder = tmp_path / "notes"
    assert make_notes_folder(str(folder)) == ""
    dead_note(ContainerStart("podman", (podman,), "a", "", str(folder)), "dead")
    (tmp_path / CONTAINER_NOTES).write_bytes(msgspec.json.encode(ContainerNotes(str(folder), "podman", (podman,))))
    guard.Guard(tmp_path, f"nobody-{tmp_path.name}").watch()
    assert len(calls(tmp_path, "rm")) == 3
    assert list(folder.iterdir()) == []


def test_a_pilot_executes_its_own_runtime_and_nothing_that_a_note_says(tmp_path: Path) -> None:
    other, own = program(tmp_path, "other-podman"), program(tmp_path, "podman")
    folder = tmp_path / "notes"
    make_notes_folder(str(folder))
    dead_note(ContainerStart("podman", (other,), "a", "", str(folder)), "of-other")
    assert other not in next(folder.iterdir()).read_text()
    assert remove_leftovers(ContainerNotes(str(folder), "podman", (own,))) == []
    assert calls(tmp_path, "rm") == [], "its store may be another: the container stays for a pilot with that runtime"
    assert remove_leftovers(ContainerNotes(str(folder), "podman", (other,))) == []
    assert len(calls(tmp_path, "rm")) == 1 and not [*folder.iterdir()]


@pytest.mark.full
async def test_a_pilot_tries_until_the_container_of_a_dead_slot_is_removed(  # DU-5
    server: Server, hire: Callable[..., Pilot], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slot that is being killed is not dead at once, and what removes its container may fail."""
    refusing = tmp_path / "refusing"
    podman = program(tmp_path, "podman", f"test $1 = rm || exit 0; test ! -e {refusing}")
    cache = tmp_path / "cache"
    monkeypatch.setenv("MENDFLOW_CONTAINER_COMMAND", podman)
    monkeypatch.setenv("MENDFLOW_CONTAINER_CACHE", str(cache))
    folder = notes_folder(cache)
    assert make_notes_folder(str(folder)) == ""
    refusing.touch()
    hire()
    assert (await server.outcome(await server.shell("true"))).ok, "the pilot has looked at what others left"
    dead_note(ContainerStart("podman", (podman,), "a", "", str(folder)), "late")
    await server.until(lambda: len(calls(tmp_path, "rm")) >= 2, "the second try")
    refusing.unlink()
    await server.until(lambda: not [*folder.iterdir()], "the container to be removed")


@pytest.mark.parametrize("kind", ["open to others", "a link", "of another user"])
def test_notes_in_a_folder_that_others_could_write_are_not_heeded_and_no_container_is_started(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    podman = program(tmp_path, "podman", "echo 0123")
    store = ImageStore(ContainerRuntime("podman", (podman,)), ContainerOptions(), tmp_path / "cache")
    folder = Path(store.records)
    assert make_notes_folder(str(folder)) == ""
    dead_note(ContainerStart("podman", (podman,), "a", "", str(folder)), "planted")
    if kind == "open to others":
        folder.chmod(0o770)
    elif kind == "a link":
        folder.rename(tmp_path / "elsewhere")
        folder.symlink_to(tmp_path / "elsewhere")
    else:
        monkeypatch.setattr(os, "getuid", lambda: folder.stat().st_uid + 1)
    assert remove_leftovers(ContainerNotes(str(folder), "podman", (podman,))) == []
    assert calls(tmp_path, "rm") == []
    with pytest.raises(ContainerRefused, match=r"chmod 700|--container-cache"):
        store.known(JobContainer(image="tools:1"))


def test_without_a_home_folder_images_and_notes_are_in_the_pilots_own_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nobody(_: int) -> NoReturn:
        raise KeyError("no such user")

    monkeypatch.setattr(pwd, "getpwuid", nobody)
    assert cache_folder(ContainerOptions(), {}, tmp_path).is_relative_to(tmp_path)
    assert cache_folder(ContainerOptions(), {"HOME": "/home/a"}, tmp_path) == Path("/home/a/.cache/mendflow/containers")


def test_parts_of_images_whose_pilot_was_killed_are_removed_by_the_next(tmp_path: Path) -> None:
    cache, script = tmp_path / "cache", f'echo part >"$3"; touch {tmp_path}/begun; exec sleep 600'
    runtime = ContainerRuntime("apptainer", (program(tmp_path, "apptainer", script),))
    child = os.fork()
    if child == 0:
        try:
            os.setsid()
            asyncio.run(ImageStore(runtime, ContainerOptions(), cache).find(JobContainer(image="tools:1")))
        finally:
            os._exit(1)
    while not (tmp_path / "begun").exists():
        time.sleep(0.02)
    [part] = (cache / "images").iterdir()
    next_one = PilotContainers(runtime, ContainerOptions(), cache)
    asyncio.run(next_one.remove_leftovers())
    assert part.exists(), "it is still being fetched"
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    asyncio.run(next_one.remove_leftovers())
    assert not part.exists()


def test_of_a_long_complaint_of_a_runtime_the_cause_at_its_end_is_kept() -> None:  # DU-5
    said = f"Error: initializing source docker://registry.example/{'deep/' * 80}image: lookup registry: no such host"
    assert start_faults.telling_part(said).endswith("lookup registry: no such host")
    assert start_faults.telling_part(said).startswith("Error: initializing source")
    assert len(start_faults.telling_part(said)) < 260
    assert start_faults.telling_part("denied") == "denied"
