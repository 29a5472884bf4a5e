"""A pilot looks around before it registers: one that cannot work says why, and ends without a job."""

import asyncio
import re
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from mendflow.core.model.checks import PilotChecks
from mendflow.core.model.data import LocateAnswer, OutputPlacement, PlaceAnswer, StorageElement
from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.ids import JobId
from mendflow.pilot.agent.http import ServerAway, ServerRefused
from mendflow.pilot.agent.site_checks import missing_requirements, unreachable, version, why_unreached
from mendflow.pilot.options import parse, read_checks
from tests.patience import PATIENCE_S
from tests.pilot.command_line import CommandLine
from tests.pilot.conftest import Pilot, Server
from tests.pilot.test_survival import waiting_command

MUCH = 1 << 60


def looked(checks: PilotChecks, folder: Path, *, memory_bytes: int = 1 << 30) -> list[str]:
    return missing_requirements(checks, folder, memory_bytes=memory_bytes, reach=unreachable)


def test_a_place_that_has_everything_lacks_nothing(tmp_path: Path) -> None:  # PJ-2
    (tmp_path / "disk").mkdir()
    checks = PilotChecks(
        executables=("sh", "/bin/sh"),
        disk_bytes=1,
        memory_bytes=1 << 30,
        python="3.11",
        modules=("json", "mendflow.pilot"),
        storage=(StorageElement(name="disk", url=f"file://{tmp_path}/disk"),),
        script="test -d disk",
    )
    assert looked(checks, tmp_path) == []


@pytest.mark.parametrize(
    ("checks", "said"),
    [
        (PilotChecks(executables=("sh", "no-such-program")), "no program no-such-program"),
        (PilotChecks(executables=("/bin/no-such-program",)), "no program /bin/no-such-program"),
        (PilotChecks(disk_bytes=MUCH), "free, and 1024 PiB are needed"),
        (PilotChecks(memory_bytes=2 << 30), "1 GiB of memory, and 2 GiB are needed"),
        (PilotChecks(python="99.1"), "99.1 is needed"),
        (PilotChecks(modules=("json", "no_such.module")), "no module no_such.module"),
        (
            PilotChecks(storage=(StorageElement(name="far", url="file:///no/such/place"),)),
            "storage element far: .*does not exist",
        ),
        (PilotChecks(storage=(StorageElement(name="odd", url="nothing://a"),)), "storage element odd: "),
        (
            PilotChecks(script="echo first; echo the licence server is away; exit 7"),
            "ended with 7: the licence server is",
        ),
        (PilotChecks(script="exit 1"), "ended with 1: it said nothing"),
    ],
)
def test_what_a_place_lacks_is_said_in_a_sentence(checks: PilotChecks, said: str, tmp_path: Path) -> None:  # PJ-2
    (why,) = looked(checks, tmp_path)
    assert re.search(said, why), why


def test_all_that_is_missing_is_said_at_once(tmp_path: Path) -> None:
    checks = PilotChecks(executables=("no-one", "no-two"), python="99", script="false")
    assert len(looked(checks, tmp_path)) == 4


def test_a_script_that_hangs_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    script = "sleep 600 & echo $! >child; wait"
    (why,) = looked(PilotChecks(script=script, script_ms=1_500), tmp_path)
    assert "did not end within 1.5 s" in why
    child = int((tmp_path / "child").read_text())
    give_up_at = time.monotonic() + PATIENCE_S
    while not _is_over(child):  # the kernel may take a moment
        assert time.monotonic() < give_up_at
        time.sleep(0.01)


def _is_over(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_a_script_may_leave_something_behind_that_holds_its_output(tmp_path: Path) -> None:
    """What it says is waited for no longer than itself may take."""
    (why,) = looked(PilotChecks(script="sleep 600 & exit 0", script_ms=500), tmp_path)
    assert "did not end" in why


def test_versions_are_compared_as_numbers() -> None:
    assert version("3.9") == (3, 9) and version("3.11.2") == (3, 11, 2)
    assert [version(text) for text in ("", "3.x", "three", "3..1", "3.1.2.3")] == [None] * 5


def test_checks_that_cannot_be_made_are_refused_before_anything_is_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "checks.json"
    for text, said in (
        ('{"executable": ["gcc"]}', "unknown field"),
        ('{"python": "new"}', "not a version of Python"),
        ('{"disk_bytes": -1}', "cannot be negative"),
        ("gcc", "is not a valid file of checks"),
    ):
        path.write_text(text)
        with pytest.raises(InvalidRequest, match=said):
            read_checks(path)
        with pytest.raises(SystemExit):
            parse(["--server", "http://h:1", "--work", str(tmp_path), "--checks", str(path)])


class Told:
    """A server that says this of the pilot's storage element."""

    def __init__(self, answer: LocateAnswer | Exception) -> None:
        self._answer = answer

    def locate(self, names: list[str]) -> LocateAnswer:
        assert not names
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer

    def place(self, job: JobId, files: dict[str, OutputPlacement], avoid: tuple[str, ...] = ()) -> PlaceAnswer:
        raise AssertionError("nothing is published before a pilot registers")


def test_a_pilot_looks_whether_it_reaches_the_storage_element_that_it_is_near(tmp_path: Path) -> None:  # PJ-2
    there, gone = (StorageElement(name="disk", url=f"file://{tmp_path}{path}") for path in ("", "/gone"))
    assert why_unreached("disk", Told(LocateAnswer(near=there))) == ""
    assert "storage element disk: " in why_unreached("disk", Told(LocateAnswer(near=gone)))
    for unknown in (LocateAnswer(), ServerAway("no answer"), ServerRefused(404, "what?")):
        assert why_unreached("disk", Told(unknown)) == "", "what nobody can say is not held against the place"


def written(folder: Path, checks: PilotChecks) -> str:
    path = folder / "checks.json"
    path.write_bytes(msgspec.json.encode(checks))
    return str(path)


async def ended(pilot: Pilot) -> int:
    return await asyncio.to_thread(pilot.process.wait, PATIENCE_S)


async def test_an_unfit_pilot_says_why_and_ends_without_a_job(
    server: Server, hire: Callable[..., Pilot], tmp_path: Path
) -> None:  # PJ-2
    job = await server.shell("true")
    checks = written(tmp_path, PilotChecks(executables=("no-such-program",), script="echo no licence; exit 1"))
    secret = tmp_path / "secret"
    secret.write_text("proof\n")
    pilot = hire("--checks", checks, "--name", "mendflow-a-1", "--site", "a", "--name-secret-file", str(secret))
    assert await ended(pilot) == 3
    (request,) = server.ledger.requests
    assert (
        request.unfit.startswith("there is no program no-such-program on the PATH; ") and "no licence" in request.unfit
    )
    assert (request.submission, request.site, request.want, request.leaving) == ("mendflow-a-1", "a", 0, True)
    assert request.submission_secret == "proof"
    assert job in server.ledger.waiting and not server.ledger.grants


async def test_a_pilot_without_a_place_for_its_jobs_says_so_too(
    server: Server, hire: Callable[..., Pilot], tmp_path: Path
) -> None:  # PJ-2
    (tmp_path / "file").touch()
    assert await ended(hire("--name", "x", work=tmp_path / "file" / "work")) == 3
    (request,) = server.ledger.requests
    assert "cannot be written to" in request.unfit and request.submission == "x"


@pytest.mark.full
async def test_an_unfit_pilot_that_reaches_nobody_ends_all_the_same(tmp_path: Path) -> None:
    checks = written(tmp_path, PilotChecks(executables=("no-such-program",)))
    pilot = Pilot("http://127.0.0.1:9", tmp_path / "work", "--checks", checks)
    assert await ended(pilot) == 3
    assert pilot.process.stderr is not None
    with pilot.process.stderr as said:
        assert b"no-such-program" in said.read()


async def test_a_fit_pilot_says_its_name_and_its_storage_and_reads_its_token_from_a_file(
    server: Server, hire: Callable[..., Pilot], tmp_path: Path
) -> None:  # PJ-2, PJ-3
    server.ledger.token = "sesame"
    (tmp_path / "token").write_text("sesame\n")
    checks = written(tmp_path, PilotChecks(executables=("sh",)))
    job = await server.shell("true")
    hire("--checks", checks, "--name", "n-1", "--storage", "disk", "--token-file", str(tmp_path / "token"))
    assert (await server.outcome(job)).fault is None
    assert {(each.submission, each.storage, each.unfit) for each in server.ledger.requests} == {("n-1", "disk", "")}


async def test_a_pilot_that_has_become_unfit_brings_home_what_it_began_and_takes_no_more(
    server: Server, hire: Callable[..., Pilot], tmp_path: Path
) -> None:  # PJ-2, JS-7
    begun = await server.shell(waiting_command(tmp_path))
    pilot = hire()
    await server.running(begun)
    await server.until((tmp_path / "a").exists, "the job to have begun")  # the slot may not have it yet
    pilot.kill()
    more = await server.shell("true")
    pilot.command += ["--checks", written(tmp_path, PilotChecks(executables=("no-such-program",)))]
    pilot.restart()
    await server.until(lambda: "no-such-program" in server.ledger.requests[-1].unfit, "the pilot to be back")
    (tmp_path / "go").touch()
    assert (await server.outcome(begun)).fault is None
    assert await ended(pilot) == 3
    assert more in server.ledger.waiting


@pytest.mark.full
def test_people_say_on_the_command_line_what_must_be_there(command_line: CommandLine) -> None:  # PJ-2
    wants = ["--needs", "no-such-program", "--needs-disk", "900 PB", "--needs-memory", "1 PB", "--needs-python", "99"]
    wants += ["--needs-module", "no_such", "--needs-storage", "file:///no/such", "--needs-script", "exit 3"]
    pilot = command_line.start("pilot", "--server", "http://127.0.0.1:9", *wants)
    said, _ = pilot.communicate(timeout=PATIENCE_S)
    assert pilot.returncode == 3
    for lack in ("no-such-program", "900 PB", "1 PB", "99", "no_such", "file:///no/such", "ended with 3"):
        assert lack in said, said
