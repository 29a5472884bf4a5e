"""What a running job says of itself reaches the server while it runs, whatever else it writes."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendflow.core.model.ids import JobId
from mendflow.core.model.values import Value
from mendflow.pilot.slot.reports import LINE_BYTES_MAX, READ_BYTES_MAX, VALUES_BYTES_MAX, ReportReader, take_report
from mendflow.reporting import report
from tests.pilot.conftest import Pilot, Server
from tests.pilot.test_limits import pids_in

Hire = Callable[..., Pilot]
ONE_LOOP = pytest.mark.asyncio(loop_scope="module")
MB = 1 << 20


def told(server: Server, job: JobId) -> dict[str, Value]:
    """The values that the server knows: an empty map says that nothing has changed."""
    values: dict[str, Value] = {}
    for request in server.ledger.requests:
        values = next((beat.values for beat in request.running if beat.job == job and beat.values), values)
    return values


def until_told(folder: Path) -> str:
    return f"while [ ! -e {folder}/go ]; do sleep 0.02; done"


async def test_values_of_a_running_command_come_with_the_next_heartbeat_which_does_not_wait(
    server: Server, hire: Hire, tmp_path: Path
) -> None:  # EX-1
    server.ledger.lease_ms = 60_000  # so that nothing else would be said for five seconds
    hire()
    steps = 3
    command = f"""
        echo '{{"step": 0, "loss": 0.5}}' >> $MENDFLOW_REPORT
        for n in $(seq {steps}); do
            while [ ! -e {tmp_path}/$n ]; do sleep 0.02; done
            echo "{{\\"step\\": $n}}" >> $MENDFLOW_REPORT
        done
        {until_told(tmp_path)}
        printf '{{"last": true}}' >> $MENDFLOW_REPORT
    """
    job = await server.shell(command)
    await server.until(lambda: told(server, job) == {"step": 0, "loss": 0.5}, "the first values")
    took = []
    for step in range(1, steps + 1):
        begun = time.monotonic()
        (tmp_path / str(step)).touch()
        await server.until(partial(_tells, server, job, {"step": step, "loss": 0.5}), "the next values")
        took.append(time.monotonic() - begun)
    assert min(took) < 4, "a busy machine may hold up some, and heartbeats that wait would hold up each"
    assert job not in server.ledger.outcomes
    (tmp_path / "go").touch()
    assert (await server.outcome(job)).values == {"step": steps, "loss": 0.5, "last": True}


def _tells(server: Server, job: JobId, values: dict[str, Value]) -> bool:
    return told(server, job) == values


@ONE_LOOP
async def test_values_of_a_running_function_are_seen_and_the_next_call_starts_without_them(
    staffed: Server, tmp_path: Path
) -> None:  # EX-1
    source = (
        "import mendflow, os, subprocess, time\n"
        "class Odd:\n"
        "  def __str__(self): return 'odd'\n"
        "def f(folder):\n"
        "  mendflow.report(rows=7, odd=Odd())\n"
        "  subprocess.run('echo \\'{\"child\": true}\\' >> $MENDFLOW_REPORT', shell=True)\n"
        "  while not os.path.exists(folder + '/go'): time.sleep(0.01)\n"
        "  mendflow.report(rows=8)\n"
        "  if os.path.exists(folder + '/crash'): os._exit(3)\n"
        "def g(): return 'quiet'\n"
    )
    job = await staffed.call(source, "f", str(tmp_path))
    await staffed.until(lambda: told(staffed, job) == {"rows": 7, "odd": "odd", "child": True}, "its values")
    (tmp_path / "go").touch()
    assert (await staffed.outcome(job)).values == {"rows": 8, "odd": "odd", "child": True}
    assert (await staffed.outcome(await staffed.call(source, "g"))).values == {}
    (tmp_path / "crash").touch()
    crashed = await staffed.outcome(await staffed.call(source, "f", str(tmp_path)))
    assert crashed.fault is not None and crashed.values == {"rows": 8, "odd": "odd", "child": True}


@ONE_LOOP
async def test_the_last_values_of_a_short_job_come_with_its_outcome(staffed: Server) -> None:  # EX-1
    shell = await staffed.shell("echo '{\"n\": 1}' >> $MENDFLOW_REPORT; exit 3")
    outcome = await staffed.outcome(shell)
    assert outcome.fault is not None and outcome.values == {"n": 1}
    calls = [await staffed.call("import mendflow\ndef f(n): mendflow.report(n=n)", "f", number) for number in range(30)]
    assert [(await staffed.outcome(call)).values for call in calls] == [{"n": number} for number in range(30)]


async def test_lines_that_are_no_reports_are_told_once_and_passed_over(
    server: Server, hire: Hire, tmp_path: Path
) -> None:
    pilot = hire()
    command = f"""
        printf 'nonsense\\n[1]\\n{{"a": NaN}}\\n{{"good": 1}}\\n{{"half":' >> $MENDFLOW_REPORT
        {until_told(tmp_path)}
        echo ' 2}}' >> $MENDFLOW_REPORT
    """
    job = await server.shell(command)
    await server.until(lambda: told(server, job) == {"good": 1}, "the good value")
    (tmp_path / "go").touch()
    outcome = await server.outcome(job)
    assert outcome.ok and outcome.values == {"good": 1, "half": 2}
    assert outcome.log_tail.count("skipped a line of $MENDFLOW_REPORT: expected a JSON object, found 'nonsense'") == 1
    source = "import os\ndef f(): open(os.environ['MENDFLOW_REPORT'], 'w').write('nonsense\\nnonsense')\n"
    outcome = await server.outcome(await server.call(source, "f"))
    assert outcome.ok and outcome.log_tail.count("skipped a line") == 1 and outcome.values == {}
    source = (
        "import os, time\n"
        "def f(folder):\n"
        "  open(os.environ['MENDFLOW_REPORT'], 'w').write('nonsense\\n{\"good\": 2}\\n')\n"
        "  while not os.path.exists(folder + '/went'): time.sleep(0.01)\n"
        "def g(): pass\n"
    )
    job = await server.call(source, "f", str(tmp_path))
    await server.until(lambda: told(server, job) == {"good": 2}, "the good value of a call")
    (tmp_path / "went").touch()
    outcome = await server.outcome(job)
    assert outcome.ok and outcome.log_tail.count("skipped a line") == 1 and outcome.values == {"good": 2}
    assert (await server.outcome(await server.call(source, "g"))).log_tail == "", "told of the call before"
    await server.until(lambda: not list((pilot.work / "attempts").iterdir()), "all of it to be removed")


@pytest.mark.full
async def test_whatever_stands_for_the_report_file_hurts_nobody(server: Server, hire: Hire, tmp_path: Path) -> None:
    pilot = hire()
    (tmp_path / "precious").write_text('{"not": "ours"}\n')
    for trick in ("mkfifo", f"ln -s {tmp_path}/precious", "ln -s /dev/zero", "mkdir -p"):
        outcome = await server.outcome(await server.shell(f"{trick} $MENDFLOW_REPORT; sleep 0.3"))
        assert outcome.ok and outcome.values == {}, trick
        source = (
            "import os, subprocess, time\n"
            "def f(trick):\n"
            "  path = os.environ['MENDFLOW_REPORT']\n"
            "  if os.path.exists(path): os.unlink(path)\n"
            "  subprocess.run(f'{trick} {path}', shell=True, check=True); time.sleep(0.3)\n"
        )
        outcome = await server.outcome(await server.call(source, "f", trick))
        assert outcome.ok and outcome.values == {}, (trick, outcome.fault)
    assert (tmp_path / "precious").read_text() == '{"not": "ours"}\n'
    after = await server.outcome(await server.call("import mendflow\ndef f(): mendflow.report(n=1)", "f"))
    assert after.values == {"n": 1}
    await server.until(lambda: not list((pilot.work / "attempts").iterdir()), "all of it to be removed")


async def test_what_was_reported_while_the_server_was_away_is_told_when_it_is_back(
    server: Server, hire: Hire, tmp_path: Path
) -> None:  # EX-1
    server.ledger.lease_ms = 30_000
    hire()
    job = await server.shell(
        f"echo '{{\"n\": 1}}' >> $MENDFLOW_REPORT; while [ ! -e {tmp_path}/more ]; do sleep 0.02; done;"
        f"echo '{{\"n\": 2}}' >> $MENDFLOW_REPORT; touch {tmp_path}/said; {until_told(tmp_path)}"
    )
    await server.until(lambda: told(server, job) == {"n": 1}, "the first value")
    await server.down()
    (tmp_path / "more").touch()
    await server.until((tmp_path / "said").exists, "it to be said")
    server.ledger.requests.clear()
    await server.up()
    await server.until(lambda: told(server, job) == {"n": 2}, "the second value")
    (tmp_path / "go").touch()
    assert (await server.outcome(job)).ok


@pytest.mark.full
async def test_heartbeats_carry_what_is_measured_so_far(server: Server, hire: Hire, tmp_path: Path) -> None:  # EX-1
    hire(slots=2)
    hog = (
        f"import os, time; x = bytearray(80 << 20); [i * i for i in range(2000000)]\n"
        f"while not os.path.exists('{tmp_path}/go'): time.sleep(0.01)"
    )
    source = "import os\ndef f(text): exec(text)\n"
    jobs = [await server.shell(f'python3 -c "{hog}"'), await server.call(source, "f", hog)]
    for job in jobs:

        def measured(job: JobId = job) -> bool:
            beat = server.ledger.beats.get(job)
            if beat is None:
                return False
            found = beat.measures
            return min(found.memory_bytes, found.peak_bytes) > 80 * MB and found.cpu_ms > 30 and found.ran_ms > 500

        await server.until(measured, f"measures of {job}")
    (tmp_path / "go").touch()
    for job in jobs:
        assert (await server.outcome(job)).measures.ran_ms > 500


@pytest.mark.alone
async def test_memory_that_grows_is_told_at_once(server: Server, hire: Hire, tmp_path: Path) -> None:  # EX-1
    server.ledger.lease_ms = 60_000
    hire()
    hog = (
        f"import os, time\nopen('{tmp_path}/pid', 'w').write(str(os.getpid()))\n"
        f"while not os.path.exists('{tmp_path}/more'): time.sleep(0.01)\n"
        f"x = bytearray(200 << 20)\nwhile not os.path.exists('{tmp_path}/go'): time.sleep(0.01)"
    )
    job = await server.shell(f'python3 -c "{hog}"')
    await pids_in(server, tmp_path / "pid")
    await server.running(job)
    (tmp_path / "more").touch()
    await server.until(lambda: server.ledger.beats[job].measures.peak_bytes > 200 * MB, "the growth", patience_s=4.5)
    (tmp_path / "go").touch()
    assert (await server.outcome(job)).ok


def test_a_report_outside_of_a_job_does_nothing_and_never_raises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MENDFLOW_REPORT", raising=False)
    report(a=1)
    monkeypatch.setenv("MENDFLOW_REPORT", str(tmp_path / "none" / "such"))
    report(a=1)
    monkeypatch.setenv("MENDFLOW_REPORT", str(tmp_path / "report"))
    circle: list[object] = []
    circle.append(circle)
    report(a=circle)
    report()
    assert not (tmp_path / "report").exists()
    report(a=2**70)
    report(a=float("nan"), b={1: 2}, c={3}, d=object)
    reports = ReportReader(str(tmp_path / "report"))
    reports.look()
    assert reports.values == {"a": None, "b": {"1": 2}, "c": [3], "d": "<class 'object'>"}
    assert b"too large for JSON" in reports.complaint()


def test_the_function_is_found_under_the_name_of_the_package() -> None:
    script = "import mendflow\nfrom mendflow import report\nassert mendflow.report is report\nreport(a=1)"
    environment = {name: value for name, value in os.environ.items() if name != "MENDFLOW_REPORT"}
    subprocess.run([sys.executable, "-c", script], check=True, env=environment)


@given(st.lists(st.binary(max_size=40) | st.sampled_from([b'{"a": 1}\n', b'{"b":', b"\n", b"[" * 5000, b"x" * 20_000])))
def test_no_bytes_of_a_job_can_harm_the_reader(tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes]) -> None:
    path = tmp_path_factory.mktemp("r") / "report"
    reports = ReportReader(str(path))
    for piece in pieces:
        with path.open("ab") as file:
            file.write(piece)
        reports.look()
    reports.look(over=True)
    again = ReportReader("")
    again.take_all(b"".join(pieces))
    assert again.values == reports.values


def test_lines_and_values_are_bounded_and_what_stands_stays(tmp_path: Path) -> None:
    path = tmp_path / "report"
    path.write_bytes(b'{"a": 1}\n{"long": "%s"}\n{"b": 2}\n' % (b"x" * LINE_BYTES_MAX))
    reports = ReportReader(str(path))
    assert reports.look() and reports.values == {"a": 1, "b": 2} and b"more than" in reports.complaint()
    assert not reports.look() and reports.complaint() == b""
    path.write_bytes(b"".join(b'{"n%d": "%s"}\n' % (number, b"x" * 5000) for number in range(9)))
    reports.look()
    assert len(str(reports.values)) < VALUES_BYTES_MAX + 100 and reports.values["a"] == 1 and "n8" not in reports.values


@pytest.mark.full
def test_a_file_that_is_written_anew_is_read_anew_and_a_flood_is_read_from_its_end(tmp_path: Path) -> None:
    path = tmp_path / "report"
    reports = ReportReader(str(path))
    assert not reports.look()
    path.write_text('{"a": 1}\n')
    reports.look()
    path.write_text('{"a": 2}\n')
    os.utime(path, ns=(1, 1))
    assert reports.look() and reports.values == {"a": 2}
    path.write_bytes(b'{"flood": 1}\n' * READ_BYTES_MAX + b'{"last": 1}\n')
    assert reports.look() and reports.values == {"a": 2, "flood": 1, "last": 1}
    assert b"faster than it was read" in reports.complaint()
    assert take_report(str(path)).endswith(b'{"last": 1}\n') and path.read_bytes() == b""
