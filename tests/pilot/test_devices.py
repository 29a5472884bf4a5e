"""Each job that asks for GPUs has its own."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendflow.core.model.ids import JobId
from mendflow.core.model.jobs import Resources
from mendflow.pilot.agent import devices
from mendflow.pilot.agent.devices import AMD, NVIDIA, Devices, visible_gpus
from tests.pilot.conftest import Pilot, Server

Hire = Callable[..., Pilot]


def holds(folder: Path, name: str) -> str:
    return f"echo ${NVIDIA} > {folder}/{name}.now; mv {folder}/{name}.now {folder}/{name}; " + (
        f"while [ ! -e {folder}/go.{name} ]; do sleep 0.02; done"
    )


async def has(server: Server, path: Path) -> list[str]:
    await server.until(path.exists, str(path))
    return names_in(path)


def names_in(path: Path) -> list[str]:
    return path.read_text().strip().split(",")


@pytest.mark.full
async def test_jobs_that_run_together_have_different_gpus_and_one_that_wants_both_waits(
    server: Server, hire: Hire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # PJ-1
    monkeypatch.delenv(NVIDIA, raising=False)
    hire("--gpus", "2", slots=4)
    one, two = Resources(gpus=1), Resources(gpus=2)
    first = await server.shell(holds(tmp_path, "a"), resources=one)
    source = (
        "import os, time\n"
        "def f(folder, variable):\n"
        "  open(folder + '/b.now', 'w').write(os.environ[variable]); os.rename(folder + '/b.now', folder + '/b')\n"
        "  while not os.path.exists(folder + '/go.b'): time.sleep(0.01)\n"
        "def g(variable): return os.environ.get(variable)\n"
    )
    second = await server.call(source, "f", str(tmp_path), NVIDIA, resources=one)
    assert {*await has(server, tmp_path / "a"), *await has(server, tmp_path / "b")} == {"0", "1"}
    both = await server.shell(holds(tmp_path, "c"), resources=two)
    none = await server.outcome(await server.call(source, "g", NVIDIA))
    assert none.outputs is None, "who asks for none is given none"
    assert not (tmp_path / "c").exists()
    (tmp_path / "go.a").touch()
    assert (await server.outcome(first)).ok and not (tmp_path / "c").exists()
    (tmp_path / "go.b").touch()
    assert (await server.outcome(second)).ok and await has(server, tmp_path / "c") == ["0", "1"]
    (tmp_path / "go.c").touch()
    assert (await server.outcome(both)).ok


@pytest.mark.full
async def test_a_restarted_agent_knows_which_gpus_are_taken(
    server: Server, hire: Hire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # PJ-1
    monkeypatch.setenv(NVIDIA, "5,GPU-7f")
    pilot = hire(slots=2)
    jobs: list[JobId] = [await server.shell(holds(tmp_path, "a"), resources=Resources(gpus=1))]
    before = await has(server, tmp_path / "a")
    pilot.kill()
    pilot.restart()
    jobs.append(await server.shell(holds(tmp_path, "b"), resources=Resources(gpus=1)))
    assert [*before, *await has(server, tmp_path / "b")] == ["5", "GPU-7f"]
    for name in "ab":
        (tmp_path / f"go.{name}").touch()
    for job in jobs:
        assert (await server.outcome(job)).ok


def test_the_variable_is_the_vendors_and_only_one_is_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "NVIDIA_GPUS", tmp_path / "nvidia")
    monkeypatch.setattr(devices, "AMD_NODES", tmp_path / "amd")
    assert visible_gpus({}) == (NVIDIA, [])
    for node, number in (("0", "0"), ("1", "4711"), ("2", "4712")):
        (tmp_path / "amd" / node).mkdir(parents=True)
        (tmp_path / "amd" / node / "gpu_id").write_text(number + "\n")
    assert visible_gpus({}) == (AMD, ["0", "1"])
    (tmp_path / "nvidia" / "0000:01:00.0").mkdir(parents=True)
    assert visible_gpus({}) == (NVIDIA, ["0"])
    assert visible_gpus({AMD: "2,3"}) == (AMD, ["2", "3"]) and visible_gpus({NVIDIA: ""}) == (NVIDIA, [])
    assert Devices(2, {NVIDIA: "4,5,6"}).take(2) == ("4", "5") and Devices(2, {}).take(9) == ("0", "1")


@given(st.integers(1, 6), st.lists(st.integers(1, 8)))
def test_no_gpu_is_given_twice_and_none_is_lost(count: int, wishes: list[int]) -> None:
    pool = Devices(count, {})
    given: list[tuple[str, ...]] = []
    for wish in wishes:
        taken = pool.take(wish)
        if taken is None:
            pool.release(given.pop(0))
        else:
            given.append(taken)
        held = [name for each in given for name in each]
        assert len(held) == len({*held}) <= count
    for each in given:
        pool.release(each)
    assert pool.take(count) == tuple(str(number) for number in range(count))
