"""Software environments on real pilots: made once on a host, used by commands and functions, and told of when they
cannot be made. Packages come from a folder, so that nothing depends on a network."""

import base64
import hashlib
import os
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from mendflow.core.model.software import CONDA, LOCK, PROJECT, REQUIREMENTS, Software
from mendflow.pilot.software import builders
from mendflow.pilot.software.environments import Environments, environment_key
from tests.pilot.conftest import Pilot, Server
from tests.pilot.processes import environment, living

Hire = Callable[..., Pilot]
WHERE = "import greeting, sys\n\ndef where():\n    return [greeting.WORD, sys.prefix]\n"
WRAPPED = """#!/bin/sh
echo "$*" >> "$(dirname "$0")/calls"
sleep "$(cat "$(dirname "$0")/pause" 2>/dev/null || echo 0)"
exec {uv} "$@"
"""


def write_wheel(folder: Path, name: str, version: str, text: str) -> None:
    """A package of one module, as an index would have it."""
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": text,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    rows = [f"{path},sha256={_digest(content)},{len(content)}" for path, content in files.items()]
    files[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,"]) + "\n"
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        for path, content in files.items():
            wheel.writestr(path, content)


def _digest(content: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content.encode()).digest()).rstrip(b"=").decode()


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    folder = tmp_path / "wheels"
    folder.mkdir()
    write_wheel(folder, "greeting", "1.0", "WORD = 'hello'\n")
    return folder


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The pilots have a uv that writes down how it is called, and environments of their own."""
    (uv,) = builders.find_uv()
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "uv").write_text(WRAPPED.format(uv=uv))
    (programs / "uv").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("MENDFLOW_ENVIRONMENTS", str(tmp_path / "environments"))
    return programs / "calls"


def installs(calls: Path) -> int:
    return sum(" install " in f" {line} " for line in calls.read_text().splitlines()) if calls.exists() else 0


def making(folder: Path) -> list[int]:
    """The processes that make an environment of this test."""
    mark = f"MENDFLOW_ENVIRONMENTS={folder / 'environments'}".encode()
    return [
        pid for pid in living() if mark in environment(pid) and b"sleep" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]


def required(server: Server, wheels: Path, *lines: str) -> Software:
    text = "\n".join(["--no-index", f"--find-links {wheels}", *lines, ""])
    return Software(files={REQUIREMENTS: server.keep(text.encode(), "requirements.txt")})


@pytest.mark.full
async def test_an_environment_is_made_once_for_all_jobs_and_pilots_of_a_host(
    server: Server, hire: Hire, tmp_path: Path, wheels: Path, calls: Path
) -> None:  # DU-5
    for number in range(2):
        hire(slots=2, work=tmp_path / f"work{number}")
    software = required(server, wheels, "greeting==1.0")
    command = 'python -c "import greeting; print(greeting.WORD)"; which python'
    jobs = [await server.shell(f"{command}; echo {number}", software=software) for number in range(50)]
    outcomes = [await server.outcome(job) for job in jobs]
    assert [each.fault for each in outcomes] == [None] * 50
    word, program, _ = outcomes[0].log_tail.splitlines()
    assert word == "hello" and program.startswith(str(tmp_path / "environments"))
    assert installs(calls) == 1


@pytest.mark.full
async def test_a_function_runs_in_its_environment_and_sees_nothing_of_the_pilots_packages(
    server: Server, hire: Hire, tmp_path: Path, wheels: Path, calls: Path
) -> None:  # DU-5
    hire()
    software = required(server, wheels, "greeting==1.0")
    outcome = await server.outcome(await server.call(WHERE, "where", software=software))
    assert outcome.fault is None, outcome.fault
    word, prefix = outcome.outputs
    assert word == "hello" and prefix.startswith(str(tmp_path / "environments"))
    other = "def other():\n    import aiohttp\n"
    outcome = await server.outcome(await server.call(other, "other", module="second", software=software))
    assert outcome.fault is not None and "aiohttp" in outcome.fault.message
    plain = await server.outcome(await server.call("def one():\n    return 1\n", "one", module="third"))
    assert plain.outputs == 1


@pytest.mark.full
async def test_a_requirement_that_nobody_has_fails_with_its_reason_and_is_tried_once(
    server: Server, hire: Hire, wheels: Path, calls: Path
) -> None:  # DU-5
    hire(slots=4)
    software = required(server, wheels, "greeting==7.0")
    jobs = [await server.shell(f"echo {number}", software=software) for number in range(50)]
    faults = [(await server.outcome(job)).fault for job in jobs]
    for fault in faults:
        assert fault is not None and (fault.name, fault.category) == ("badEnvironment", "input")
        assert "greeting==7.0" in fault.message
    assert installs(calls) == 1


@pytest.mark.full
async def test_an_environment_whose_maker_was_killed_is_made_anew(
    server: Server, hire: Hire, tmp_path: Path, wheels: Path, calls: Path
) -> None:  # DU-5
    (calls.parent / "pause").write_text("600")
    first = hire(work=tmp_path / "first")
    software = required(server, wheels, "greeting==1.0")
    job = await server.shell('python -c "import greeting"', software=software)
    await server.until(lambda: bool(making(tmp_path)), "an environment to be made")
    first.kill()
    await server.until(lambda: not making(tmp_path), "what was being made to end with its pilot")
    (calls.parent / "pause").write_text("0")
    server.ledger.lapse(job)
    hire(work=tmp_path / "second")
    outcome = await server.outcome(job)
    assert outcome.fault is None
    assert installs(calls) == 1


async def test_modules_of_the_cluster_are_loaded_before_a_job(
    server: Server, hire: Hire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # DU-5
    home = tmp_path / "modules"
    (home / "init").mkdir(parents=True)
    (home / "init" / "bash").write_text(
        'module() {\n  shift\n  for each in "$@"; do\n'
        "    case $each in tool/*) export TOOL_VERSION=${each#tool/} PATH=/opt/tool/bin:$PATH ;;\n"
        "      *) echo \"ERROR: Unable to locate a modulefile for '$each'\" >&2; return 1 ;; esac\n  done\n}\n"
    )
    monkeypatch.setenv("MODULESHOME", str(home))
    hire()
    good = await server.outcome(await server.shell("echo $TOOL_VERSION $PATH", software=Software(modules=("tool/3",))))
    assert good.log_tail.startswith("3 /opt/tool/bin:")
    given = "import os\n\ndef version():\n    return os.environ['TOOL_VERSION']\n"
    called = await server.outcome(await server.call(given, "version", software=Software(modules=("tool/4",))))
    assert called.outputs == "4"
    bad = await server.outcome(await server.shell("true", software=Software(modules=("tool/3", "other/1"))))
    assert bad.fault is not None and bad.fault.name == "modulesNotLoaded"
    assert "Unable to locate a modulefile for 'other/1'" in bad.fault.message


async def test_a_host_without_modules_says_so(
    server: Server, hire: Hire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # DU-5
    for name in ("MODULESHOME", "LMOD_PKG"):
        monkeypatch.delenv(name, raising=False)
    hire()
    outcome = await server.outcome(await server.shell("true", software=Software(modules=("no-such-module/0",))))
    assert outcome.fault is not None and outcome.fault.name == "modulesNotLoaded"


def test_each_kind_of_description_has_its_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # DU-5
    for name in ("uv", "micromamba", "conda"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    ref = Server().keep(b"")
    lock = builders.build_of(Software(kind="uv", files={PROJECT: ref, LOCK: ref}), "/p", "/f")
    assert lock.commands[0][:3] == [str(tmp_path / "uv"), "sync", "--frozen"]
    assert lock.variables == {"UV_PROJECT_ENVIRONMENT": "/p"}
    conda = Software(kind="conda", files={CONDA: ref})
    described = ["--yes", "--quiet", "--prefix", "/p", "--file", "/f/environment.yaml"]
    assert builders.build_of(conda, "/p", "/f").commands == [[str(tmp_path / "micromamba"), "create", *described]]
    (tmp_path / "micromamba").unlink()
    assert builders.build_of(conda, "/p", "/f").commands == [[str(tmp_path / "conda"), "env", "create", *described]]


@pytest.mark.parametrize(
    ("printed", "name"),
    [
        ("error: Failed to fetch: `https://host/x`\n  Caused by: dns error", "environmentNotMade"),
        ("error: failed to write: No space left on device", "environmentNotMade"),
        ("  × No solution found: because there is no version of a==9", "badEnvironment"),
        ("", "badEnvironment"),
    ],
)
def test_what_may_pass_is_told_from_what_cannot(printed: str, name: str) -> None:  # DU-5
    assert builders.failure(Software(packages=("a==9",)), "uv", printed).name == name


def test_what_nobody_has_used_for_long_is_removed_and_what_is_used_stays(tmp_path: Path) -> None:  # DU-5
    folder = tmp_path / "environments"

    def no_fetch(*_: object) -> None:
        raise AssertionError("nothing is fetched")

    def complete(software: Software) -> Path:
        prefix = folder / environment_key(software)
        prefix.mkdir(parents=True)
        content = {"prefix": str(prefix), "python": "3.11"}
        (prefix / "mendflow-complete.json").write_bytes(msgspec.json.encode(content))
        Path(f"{prefix}.lock").touch()
        return prefix

    used, unused, fresh = (Software(packages=(name,)) for name in ("used", "unused", "fresh"))
    paths = [complete(each) for each in (used, unused, fresh)]
    one, other = Environments(folder, no_fetch), Environments(folder, no_fetch)
    one.make(used, lambda: True)
    for path in paths[:2]:
        os.utime(f"{path}.lock", (time.time() - 90 * 86_400,) * 2)
    assert other.remove_unused() == [paths[1].name]
    assert [path.exists() for path in paths] == [True, False, True]
    one.close()
    assert other.remove_unused() == [paths[0].name]


async def test_a_name_that_leads_elsewhere_is_no_file_of_a_description(
    server: Server, hire: Hire, tmp_path: Path, calls: Path
) -> None:  # DU-5
    hire()
    target = tmp_path / "written"
    for name in (f"../../{target.name}", str(target)):
        software = Software(files={REQUIREMENTS: server.keep(b""), name: server.keep(b"x")})
        outcome = await server.outcome(await server.shell("true", software=software))
        assert outcome.fault is not None and "is no file of such a description" in outcome.fault.message
    assert not target.exists()
