"""Every way in which an attempt can fail has its name, its category, how far the attempt had come, and what a rule may
want to know: one table, with real processes."""

import errno
import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from aiohttp import web

from mendflow.core.model.faults import AttemptStage, Category, Fault
from mendflow.core.model.ids import ItemId, JobId
from mendflow.core.model.jobs import FunctionRef, JobSpec, Limits, Resources
from mendflow.core.model.values import Value
from mendflow.pilot.files.staging_faults import StagingFailed
from mendflow.pilot.files.work_folder import WorkFolder
from mendflow.pilot.slot import memory, processes, script_shells, shell
from mendflow.pilot.slot.faults import StopReason, exit_fault, leftover_fault, start_fault, stop_fault
from mendflow.pilot.slot.memory import OutOfMemoryKills, counters, near_bound
from mendflow.pilot.slot.messages import NIL, SlotWork
from mendflow.pilot.slot.parent_death import KillOnParentDeath
from mendflow.pilot.slot.processes import Reaper
from mendflow.pilot.slot.settings import SLOT_SETTINGS
from mendflow.pilot.worker.function_faults import ArgumentMissing, CallSetupFailed, fault_of
from tests.pilot.conftest import Pilot, Server
from tests.pilot.test_limits import pids_in
from tests.pilot.test_parts import kept
from tests.pilot.test_parts import stage as staging_of
from tests.pilot.test_survival import slots_of, waiting_command

Hire = Callable[..., Pilot]
ONE_LOOP = pytest.mark.asyncio(loop_scope="module")
MB = 1 << 20

SOURCE = """
import os, pathlib, subprocess, time
class TooBig(ValueError): pass
def raises(): raise TooBig("by 3")
def leaves(): raise SystemExit(2)
def calls_what_fails(): subprocess.run(["sh", "-c", "exit 75"], check=True)
def full(): open("/dev/full", "wb", buffering=0).write(b"x")
def asks_too_much(): raise MemoryError("so much")
def takes_two(a, b): return a
def is_no_data(): return object()
def gives_a_path(): return pathlib.Path("out.txt")
def hogs(): x = bytearray(300 << 20); time.sleep(600)
def sleeps(): time.sleep(600)
def is_killed(): x = bytearray(b"x") * (190 << 20); time.sleep(0.2); os.kill(os.getpid(), 9)
"""


def command(text: str, **more: Value) -> JobSpec:
    return JobSpec(item=ItemId("item"), command=text, **more)


def function(name: str, *args: Value, module: str = "given", source: str = SOURCE, **more: Value) -> JobSpec:
    code = kept(source.encode())
    return JobSpec(
        item=ItemId("item"), function=FunctionRef(module=module, name=name, code=code), args=list(args), **more
    )


def killed_near(limit_mb: int) -> JobSpec:
    """Its memory is below what it asked for when it is killed, by somebody who does not say why."""
    text = f"import os, time; x = bytearray(b'x') * ({limit_mb - 15} << 20); time.sleep(0.2); os.kill(os.getpid(), 9)"
    return command(f'exec python3 -c "{text}"', resources=Resources(memory_bytes=limit_mb * MB))


GONE = kept(b"gone")
HERE = kept(b"here")
E, S = AttemptStage.EXECUTION, AttemptStage.START
TABLE: list[tuple[JobSpec, str, Category, AttemptStage, dict[str, Any]]] = [
    (command("exit 7"), "exitCode", Category.JOB, E, {"exit_code": 7}),
    (command("no-such-command"), "exitCode", Category.INPUT, E, {"exit_code": 127}),
    (command("kill -SEGV $$"), "signal", Category.JOB, E, {"signal": 11, "data": {"signal": "SIGSEGV"}}),
    (command("kill -9 $$"), "signal", Category.JOB, E, {"signal": 9, "data": {"signal": "SIGKILL"}}),
    (killed_near(150), "memoryKilled", Category.MEMORY, E, {"signal": 9}),
    (
        function("is_killed", resources=Resources(memory_bytes=220 * MB)),
        "memoryKilled",
        Category.MEMORY,
        E,
        {"signal": 9},
    ),
    (function("hogs", resources=Resources(memory_bytes=150 * MB)), "memoryLimit", Category.MEMORY, E, {}),
    (function("asks_too_much"), "MemoryError", Category.MEMORY, E, {}),
    (command("sleep 600", resources=Resources(wall_ms=200)), "timeLimit", Category.TIME, E, {}),
    (function("sleeps", resources=Resources(wall_ms=300)), "timeLimit", Category.TIME, E, {}),
    (function("raises"), "TooBig", Category.JOB, E, {"message": "by 3"}),
    (function("leaves"), "SystemExit", Category.JOB, E, {"exit_code": 2}),
    (function("calls_what_fails"), "CalledProcessError", Category.JOB, E, {"exit_code": 75}),
    (function("full"), "diskFull", Category.RESOURCE, E, {"file": ""}),
    (function("takes_two", 1), "TypeError", Category.INPUT, E, {}),
    (function("nothing"), "noSuchFunction", Category.INPUT, S, {}),
    (function("f", source="import nothing_of_that_name"), "ModuleNotFoundError", Category.INPUT, S, {}),
    (function("f", source="def f(:"), "SyntaxError", Category.INPUT, S, {}),
    (function("f", module="no-module"), "badModule", Category.INPUT, AttemptStage.STAGE_IN, {}),
    (command("true", env={"BIG": "x" * 200_000}), "badCommand", Category.INPUT, S, {"data": {"errno": "E2BIG"}}),
    (command("true", inputs={"../a": HERE}), "badPath", Category.INPUT, AttemptStage.STAGE_IN, {"file": "../a"}),
    (
        command("true", inputs={"a": HERE, "a/b": HERE}),
        "badPath",
        Category.INPUT,
        AttemptStage.STAGE_IN,
        {"file": "a/b"},
    ),
    (
        command("true", replicas={"a": ("gopher://x/a",)}),
        "badSource",
        Category.INPUT,
        AttemptStage.STAGE_IN,
        {"file": "a"},
    ),
    (command("true", inputs={"in/a": GONE}), "missingInput", Category.DATA, AttemptStage.STAGE_IN, {"file": "in/a"}),
    (function("f", source="# gone"), "missingInput", Category.DATA, AttemptStage.STAGE_IN, {}),
    (
        command("true", files={"t": "t.csv"}),
        "missingOutput",
        Category.OUTPUT,
        AttemptStage.STAGE_OUT,
        {"file": "t.csv"},
    ),
    (function("asks_too_much", files={"t": "t"}), "MemoryError", Category.MEMORY, E, {}),
    (command("echo nonsense > $MENDFLOW_OUTPUT"), "badOutput", Category.OUTPUT, AttemptStage.STAGE_OUT, {}),
    (
        function("gives_a_path"),
        "notData",
        Category.OUTPUT,
        AttemptStage.STAGE_OUT,
        {
            "message": "given.gives_a_path returned a PosixPath, which is not data: it is the path out.txt, and there "
            "is no such file when the job has ended; for the mere path return str(path)"
        },
    ),
    (function("is_no_data"), "notData", Category.OUTPUT, AttemptStage.STAGE_OUT, {}),
]


@pytest.mark.full
async def test_every_failure_says_what_it_is_where_it_was_and_what_was_measured(
    server: Server, hire: Hire
) -> None:  # FM-12
    hire(slots=2)
    server.keep(b"here")
    for source in {SOURCE, "import nothing_of_that_name", "def f(:"}:
        server.keep(source.encode())
    jobs = [await server.submit(spec) for spec, *_ in TABLE]
    found: dict[str, Fault] = {}
    for job, (_, name, category, stage, more) in zip(jobs, TABLE, strict=True):
        fault = (await server.outcome(job)).fault
        assert fault is not None, name
        assert (fault.name, fault.category, fault.stage) == (name, category, stage), fault
        for field, value in more.items():
            assert getattr(fault, field) == value, (name, field)
        assert fault.message and len(server.ledger.accepted_fences[job]) == 1
        found[name] = fault
    assert found["memoryLimit"].data["limit_bytes"] == 150 * MB < found["memoryLimit"].data["peak_bytes"]
    assert found["memoryKilled"].data["limit_bytes"] > found["memoryKilled"].data["peak_bytes"] > 100 * MB
    assert found["timeLimit"].data["limit_ms"] == 300 <= found["timeLimit"].data["ran_ms"]
    assert found["TooBig"].data == {"type": "TooBig", "types": ["TooBig", "ValueError", "Exception", "BaseException"]}
    assert found["diskFull"].infrastructure and found["diskFull"].data["folder"]
    assert found["missingOutput"].data == {"output": "t"}


async def test_a_missing_input_names_what_was_tried_and_why(server: Server, hire: Hire) -> None:  # FM-12, FM-8
    hire()
    replicas = {"a": (f"kept:{GONE.sha256}", "https://elsewhere/a", "/data/a")}
    fault = (await server.outcome(await server.submit(command("true", inputs={"a": GONE}, replicas=replicas)))).fault
    assert fault is not None and fault.file == "a" and "could not be had from the server" in fault.message
    assert fault.data["source"] == f"kept:{GONE.sha256}" and "404" in fault.data["reason"]
    assert fault.data["others"] == ["https://elsewhere/a", "/data/a"]


async def test_outputs_that_the_server_will_not_have_are_a_failure_of_stage_out(
    server: Server, hire: Hire, monkeypatch: pytest.MonkeyPatch
) -> None:  # FM-12
    async def refuse(_self: Server, _request: web.Request) -> web.Response:
        return web.Response(status=507, text="no room")

    monkeypatch.setattr(Server, "_put", refuse)
    await server.down()
    await server.up()
    hire()
    fault = (await server.outcome(await server.submit(command("echo x > deep/t", files={"t": "deep/t"})))).fault
    assert fault is not None and (fault.name, fault.category) == ("notKept", Category.OUTPUT)
    assert (fault.stage, fault.file) == (AttemptStage.STAGE_OUT, "deep/t") and "507" in fault.data["reason"]


async def test_a_slot_that_was_killed_is_the_places_failure_during_execution(
    server: Server, hire: Hire, tmp_path: Path
) -> None:  # FM-12
    pilot = hire()
    job = await server.submit(command(waiting_command(tmp_path)))
    await pids_in(server, tmp_path / "a")
    for pid in slots_of(pilot):
        os.kill(pid, signal.SIGKILL)
    fault = (await server.outcome(job)).fault
    assert fault is not None and (fault.name, fault.category, fault.stage) == ("slotDied", Category.RESOURCE, E)


async def test_a_work_folder_that_is_broken_is_the_places_failure_before_the_start(
    server: Server, hire: Hire, tmp_path: Path
) -> None:  # FM-12
    hire()
    assert (await server.outcome(await server.submit(command("true")))).ok
    attempts = tmp_path / "work" / "attempts"
    await server.until(lambda: not any(attempts.iterdir()), "the first one's folder to be tidied up")
    attempts.rmdir()
    attempts.write_text("in the way")
    plain, staged = await server.submit(command("true")), await server.submit(command("true", files={"t": "t"}))
    fault = (await server.outcome(plain)).fault
    assert fault is not None and (fault.name, fault.category, fault.stage) == ("cannotStart", Category.RESOURCE, S)
    assert fault.data["errno"] in ("ENOTDIR", "EEXIST")
    fault = (await server.outcome(staged)).fault
    assert fault is not None
    assert (fault.name, fault.category, fault.stage) == ("cannotStage", Category.RESOURCE, AttemptStage.STAGE_IN)
    attempts.unlink()
    attempts.mkdir()


@ONE_LOOP
async def test_a_function_that_removes_its_folder_costs_the_next_one_nothing(staffed: Server) -> None:
    source = "import os, shutil\ndef f(): shutil.rmtree(os.getcwd()); return 1\ndef g(): return os.listdir('.')\n"
    jobs = [await staffed.call(source, name) for name in ("f", "g", "f", "f", "g")]
    assert [(await staffed.outcome(job)).outputs for job in jobs] == [1, [], 1, 1, []]


@ONE_LOOP
async def test_a_limit_that_is_tighter_already_stays(staffed: Server) -> None:
    limits = Limits(open_files=10**9)
    outcome = await staffed.outcome(await staffed.shell("ulimit -n", limits=limits))
    assert outcome.ok and 0 < int(outcome.log_tail) < 10**9


def test_without_a_shell_the_place_is_at_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # FM-12
    work_folder = WorkFolder(tmp_path)
    work_folder.make()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(script_shells, "SHELL", "/no/such/shell")
    work = SlotWork(JobId("c/1"), 1, "c", "i", "true", NIL, "", "", {}, {}, False, 0, 0, Limits())
    with pytest.raises(OSError, match="such") as failure:
        shell.ShellRun(work, work_folder, {}, KillOnParentDeath(), script_shells.ScriptShells({}), SLOT_SETTINGS)
    fault = start_fault(failure.value, str(tmp_path / "attempts" / "a"))
    assert (fault.category, fault.stage, fault.data) == (Category.RESOURCE, S, {"errno": "ENOENT"})


@pytest.mark.parametrize(
    ("number", "name", "category"),
    [
        (errno.ENOSPC, "diskFull", Category.RESOURCE),
        (errno.EDQUOT, "diskFull", Category.RESOURCE),
        (errno.EROFS, "cannotStage", Category.RESOURCE),
        (errno.EACCES, "cannotStage", Category.RESOURCE),
        (errno.EISDIR, "badPath", Category.INPUT),
    ],
)
def test_what_the_system_says_while_staging_tells_whose_fault_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, name: str, category: Category
) -> None:  # FM-12
    staging, _ = staging_of(tmp_path, b"good")

    def fails(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(shutil, "copyfile", fails)
    with pytest.raises(StagingFailed) as failure:
        staging.stage_in(JobSpec(item=ItemId("i"), command="x", inputs={"a": kept(b"good")}), str(tmp_path / "one"))
    fault = failure.value.fault
    assert (fault.name, fault.category, fault.stage, fault.file) == (name, category, AttemptStage.STAGE_IN, "a")
    if name == "diskFull":
        assert fault.data["folder"] == str(tmp_path) and fault.data["free_bytes"] > 0


def test_a_start_on_a_full_disk_is_laid_to_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:  # FM-12
    fault = start_fault(OSError(errno.ENOSPC, "No space left on device"), "/tmp/a")
    assert (fault.name, fault.stage) == ("diskFull", S)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=5))
    fault = start_fault(OSError(errno.EIO, "I/O error"), "/tmp/a")
    assert (fault.name, fault.data) == ("diskFull", {"free_bytes": 5, "folder": "/tmp"})


def test_the_kernels_kill_is_known_by_its_count_or_by_how_much_the_job_had(tmp_path: Path) -> None:  # FM-12
    events = tmp_path / "memory.events"
    events.write_text("low 0\noom 4\noom_kill 3\n")
    kernel = OutOfMemoryKills([tmp_path / "none", events])
    assert not kernel.look()
    events.write_text("low 0\noom 9\noom_kill 4\n")
    assert kernel.look() and not kernel.look()
    assert not OutOfMemoryKills([tmp_path / "none"]).look()
    events.write_text("oom_kill 5\n")
    kernel.heartbeat()
    assert kernel.look() and not kernel.look(), "what happened just before the last pulse may be why the job ends now"
    events.write_text("oom_kill 6\n")
    kernel.heartbeat()
    kernel.heartbeat()
    assert not kernel.look(), "what it has outlived for a whole pulse was not done to it"
    for status in (signal.SIGKILL, 137 << 8):
        plain = exit_fault(status, str(tmp_path / "a"), memory_bytes=100 * MB, peak_bytes=50 * MB)
        counted = exit_fault(status, str(tmp_path / "a"), peak_bytes=50 * MB, kernel_kill=True)
        near = exit_fault(status, str(tmp_path / "a"), memory_bytes=100 * MB, peak_bytes=95 * MB)
        assert plain is not None and plain.category is Category.JOB
        assert counted is not None and (counted.name, counted.category) == ("memoryKilled", Category.MEMORY)
        assert near is not None and near.data == {"peak_bytes": 95 * MB, "limit_bytes": 100 * MB}
    other = exit_fault(signal.SIGTERM, str(tmp_path / "a"), peak_bytes=95 * MB, memory_bytes=100 * MB, kernel_kill=True)
    assert other is not None and other.category is Category.JOB
    assert near_bound(1 << 62, 0) and not near_bound(1 << 20, 0)


def test_the_memory_of_a_machine_is_no_more_than_any_group_around_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # PJ-2
    monkeypatch.setattr(memory, "CGROUPS", tmp_path / "groups")
    inner = tmp_path / "groups" / "memory" / "batch" / "job"
    inner.mkdir(parents=True)
    own = tmp_path / "own"
    own.write_text("4:memory:/batch/job\n0::/\n")
    whole = memory.machine_bytes(str(own))
    assert whole == memory.machine_bytes(str(tmp_path / "none")) > 100 * MB
    (inner / "memory.limit_in_bytes").write_text(f"{1 << 62}\n")
    assert memory.machine_bytes(str(own)) == whole
    (inner.parent / "memory.limit_in_bytes").write_text(f"{100 * MB}\n")
    assert memory.machine_bytes(str(own)) == 100 * MB
    own.write_text("0::/box\n")
    (tmp_path / "groups" / "box").mkdir()
    (tmp_path / "groups" / "box" / "memory.max").write_text("max\n")
    assert memory.machine_bytes(str(own)) == whole
    (tmp_path / "groups" / "box" / "memory.max").write_text(f"{90 * MB}\n")
    assert memory.machine_bytes(str(own)) == 90 * MB


def test_the_kernel_counts_in_the_group_of_processes_that_this_one_is_in(tmp_path: Path) -> None:
    (tmp_path / "new").write_text("0::/box/inner\n")
    (tmp_path / "old").write_text("9:cpu,cpuacct:/x\n4:memory:/box\n0::/\n")
    new = [str(path) for path in counters(str(tmp_path / "new"))]
    old = [str(path) for path in counters(str(tmp_path / "old"))]
    top = "/sys/fs/cgroup"
    assert new == [*(f"{top}/{group}memory.events" for group in ("box/inner/", "box/", "")), "/proc/vmstat"]
    assert old[0] == "/sys/fs/cgroup/memory/box/memory.oom_control" and old[-1] == "/proc/vmstat"
    assert [str(path) for path in counters(str(tmp_path / "none"))] == ["/proc/vmstat"]


def test_processes_that_would_not_die_are_a_failure_of_clean_up_and_are_not_waited_for_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # FM-12
    immortal = subprocess.Popen(["sleep", "600"])
    try:
        reaper = Reaper()
        monkeypatch.setattr(processes, "KILL_PATIENCE_S", 0.0)
        monkeypatch.setattr(processes, "send", lambda *_: None)
        left = reaper.kill_below()
        assert immortal.pid in left and reaper.kill_below() == [] and reaper.below() == []
    finally:
        immortal.kill()
        immortal.wait()
    fault = leftover_fault(left)
    assert (fault.category, fault.stage, fault.data) == (Category.CLEANUP, AttemptStage.CLEANUP, {"left": left})


def test_every_fault_of_a_pilot_has_a_stage_and_can_travel() -> None:  # FM-12
    faults = [stop_fault(end, wall_ms=1, memory_bytes=1, peak_bytes=2, ran_ms=3) for end in StopReason]
    faults += [
        fault_of(error, AttemptStage.START, "/tmp/a", 5)
        for error in (
            CallSetupFailed(OSError(errno.ENOENT, "gone")),
            ArgumentMissing("gone"),
            KeyboardInterrupt(),
            ImportError("x"),
        )
    ]
    for fault in faults:
        assert fault.stage and msgspec.msgpack.decode(msgspec.msgpack.encode(fault), type=Fault) == fault
    assert [fault.category for fault in faults[-4:]] == [
        Category.RESOURCE,
        Category.DATA,
        Category.INPUT,
        Category.INPUT,
    ]


@pytest.mark.parametrize(("path", "told"), [("data/a.txt", True), ("/data/a.txt", False), ("samtools", False)])
def test_a_file_that_a_function_looks_for_in_its_own_folder_is_told_how_to_come_there(path: str, told: bool) -> None:
    fault = fault_of(FileNotFoundError(2, "No such file or directory", path), E, "/tmp", 0)
    assert ("declared as Path" in fault.message) is told
