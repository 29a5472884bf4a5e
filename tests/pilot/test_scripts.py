"""A script that fails anywhere fails its job, under whichever shell was not told otherwise."""

import shutil
import socket
from pathlib import Path

import pytest

from mendflow.core.model.jobs import Limits
from mendflow.core.model.shells import PLAIN_SHELL
from mendflow.pilot.slot import script_shells
from mendflow.pilot.slot.exit_hints import exit_hint
from mendflow.pilot.slot.script_shells import ProcessStart, ScriptShells, ShellNotFound, is_plain_command
from tests.pilot.conftest import Server

ONE_LOOP = pytest.mark.asyncio(loop_scope="module")
PIPE = "cat missing.bam | sort > out.txt\necho done"
MIDDLE = "no_such_program index out.txt\necho done"


@pytest.fixture
def server(staffed: Server) -> Server:
    return staffed


@ONE_LOOP
async def test_a_script_ends_where_it_fails_unless_its_shell_goes_on(server: Server) -> None:  # DU-1
    cases = [
        (PIPE, "", 1),
        (PIPE, "bash", 1),
        (PIPE, "sh", 0),  # no other shell than bash sees what fails inside a pipe
        (PIPE, PLAIN_SHELL, 0),
        (PIPE, "bash -e {0}", 0),
        (MIDDLE, "", 127),
        (MIDDLE, "sh", 127),
        (MIDDLE, PLAIN_SHELL, 0),
        (MIDDLE, "bash -e {0}", 127),
        ("false\necho done", "", 1),
        ("false; echo done", "", 1),
        ("n=$(false)\necho done", "", 1),
        ("if false; then echo a; fi\nfalse || echo done", "", 0),
        ("false &\nwait $!\necho done", "", 1),
        ("cd missing\nrm -rf x\necho done", "", 1),
        ("f() { false; echo on; }\nf\necho done", "", 1),
        ("echo $NOT_SET\necho done", "", 1),
        ("echo $NOT_SET\necho done", "sh", 2),
        ("echo ${NOT_SET:-x}\necho done", "", 0),
        ("[[ a == a* ]] && echo done", "", 0),
        ("raise SystemExit(3)", "python", 3),
        ("import sys\nprint(sys.argv[0].endswith('.script'))", "python", 0),
        ("BEGIN { exit 4 }", "awk -f {0}", 4),
    ]
    jobs = [await server.shell(command, shell=shell) for command, shell, _ in cases]
    found = [(await server.outcome(job)).exit_code for job in jobs]
    wanted = [code for _, _, code in cases]
    assert [each for each in zip(cases, found, strict=True) if each[0][2] != each[1]] == [] and found == wanted


@ONE_LOOP
async def test_limits_hold_whatever_runs_the_script(server: Server) -> None:
    limits = Limits(open_files=64)
    read = "import resource\nprint(resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    for shell, command in (("", "ulimit -n | cat"), ("python", read), ("sh {0}", "ulimit -n")):
        outcome = await server.outcome(await server.shell(command, shell=shell, limits=limits))
        assert outcome.ok and outcome.log_tail.strip() == "64"


@ONE_LOOP
async def test_a_shell_that_the_pilot_does_not_have_is_named_with_the_host(server: Server) -> None:
    outcome = await server.outcome(await server.shell("1", shell="no-such-shell --x {0}"))
    assert outcome.fault is not None and outcome.fault.exit_code == 127
    assert "no `no-such-shell` on the PATH" in outcome.fault.message and socket.gethostname() in outcome.fault.message


@ONE_LOOP
async def test_a_template_finds_its_program_on_the_path_of_the_job(server: Server, tmp_path: Path) -> None:
    own = tmp_path / "own-shell"
    own.write_text("#!/bin/sh\necho own; cat $1\n")
    own.chmod(0o755)
    job = await server.shell("the script", shell="own-shell {0}", env={"PATH": f"{tmp_path}:/usr/bin:/bin"})
    assert (await server.outcome(job)).log_tail == "own\nthe script"


@ONE_LOOP
async def test_a_reader_that_ends_first_is_explained(server: Server) -> None:  # DU-1
    fault = (await server.outcome(await server.shell("yes | head -1"))).fault
    assert fault is not None and fault.exit_code == 141
    assert "pipefail" in fault.message and "`shell: sh`" in fault.message
    assert (await server.outcome(await server.shell("yes | head -1", shell="sh"))).ok


def test_where_there_is_no_bash_scripts_stop_at_what_fails_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script_shells, "find_bash", lambda: "")
    shells = ScriptShells({})
    start = shells.process("", "a\nb", "/s", env={}, limits=Limits())
    assert start == ProcessStart("/bin/sh", ["sh", "-eu", "-c", "a\nb"])
    with pytest.raises(ShellNotFound, match="no `bash`"):
        shells.process("bash", "a", "/s", env={}, limits=Limits())


@pytest.mark.parametrize(
    ("command", "plain"),
    [
        ("true", True),
        ("sleep 0.5", True),
        ("samtools index -@ 4 out/a.bam", True),
        ("./analyse.sh --n=3", True),
        ("exit 3", True),
        ("a | b", False),
        ("a\nb", False),
        ("a; b", False),
        ("echo -e x", False),
        ("source x", False),
        ("[[ a", False),
        ("a ~/b", False),
        ("A=1 b", False),
        ("a {1,2}", False),
        ("a *", False),
        ("time a", False),
    ],
)
def test_only_a_program_with_plain_words_is_run_without_bash(command: str, plain: bool) -> None:
    assert is_plain_command(command) is plain
    begun = ScriptShells({}).process("", command, "/s", env={}, limits=Limits()).program
    assert (begun == "/bin/sh") is (plain or not shutil.which("bash"))
    own = ScriptShells({"BASH_FUNC_module%%": "() { :; }"}).process("", command, "/s", env={}, limits=Limits())
    assert own.program == (shutil.which("bash") or "/bin/sh"), "a function of bash may be meant"


HOST = f"this pilot (host {socket.gethostname()})"


@pytest.mark.parametrize(
    ("code", "log", "unstaged", "told"),
    [
        (127, "bash: line 2: samtools: command not found\n", [], f"`samtools` is not installed on {HOST}"),
        (127, "sh: 1: exec: /no/such/tool: not found\n", [], "`/no/such/tool` is not on this pilot"),
        (127, "sh: 1: samtools: not found\n", [], "add `inputs: [samtools]` and call it as `./samtools`"),
        (127, "bash: line 1: ./analyse.sh: No such file or directory\n", [], "add `inputs: [analyse.sh]`"),
        (127, "bash: line 1: /opt/x/run: No such file or directory\n", [], f"`/opt/x/run` is not on {HOST}"),
        (127, "/w/a.1.script: line 3: foo: command not found\n", [], "`foo` is not installed"),
        (127, "/usr/bin/env: 'nodejs': No such file or directory\n", [], "`nodejs` is not installed"),
        (127, "", [], f"not installed on {HOST}"),
        (127, "bash: line 1: ./analyse.sh: No such file or directory\n", ["analyse.sh"], "add `inputs: [analyse.sh]`"),
        (127, "sh: 1: analyse.sh: not found\n", ["analyse.sh"], "the flow's folder has such a file"),
        (2, "python3: can't open file '{folder}/a.py': [Errno 2] No such file or directory\n", ["a.py"], "`a.py` was"),
        (
            1,
            "cat: lib/b.py: No such file or directory\nwc: ./a.py: No such file or directory",
            ["a.py", "lib/b.py"],
            "a.py, lib/b.py were not found",
        ),
        (1, "FileNotFoundError: [Errno 2] No such file or directory: 'a.csv'\n", ["a.csv"], "`a.csv` was not found"),
        (1, "Error: Unable to access jarfile tool.jar\n", ["tool.jar"], "add `inputs: [tool.jar]`"),
        (126, "bash: line 1: ./here.sh: Permission denied\n", [], "`chmod +x` the file, or say `bash here.sh`"),
        (127, "bash: line 1: runs.sh: command not found\n", [], "call it as `./runs.sh`"),
        (127, "bash: line 1: ./runs.sh: cannot execute: required file not found\n", [], "the interpreter"),
        (1, "", ["here.sh"], ""),
        (1, "here.sh: line 3: cat: /ref/hg38.fa: No such file or directory\n", ["here.sh"], ""),
        (1, "a.csv: 3 rows read\nbad column in a.csv\n", ["a.csv"], ""),
        (1, "cat: results/a.csv: No such file or directory\n", ["a.csv"], ""),
        (1, "cat: /ref/a.csv: No such file or directory\n", ["a.csv"], ""),
        (1, "cat: a.csv.gz: No such file or directory\n", ["a.csv"], ""),
        (1, "cat: no-a.csv: No such file or directory\n", ["a.csv"], ""),
        (127, "whatever", ["analyse.sh"], f"not installed on {HOST}"),
        (127, "cat: a.csv: No such file\nx.sh: line 3: samtools: command not found\n", ["a.csv"], "`samtools` is not"),
        (1, "bash: line 1: x: command not found", [], ""),
    ],
)
def test_an_exit_code_says_what_to_do(code: int, log: str, unstaged: list[str], told: str, tmp_path: Path) -> None:
    (tmp_path / "here.sh").write_text("x")
    (tmp_path / "runs.sh").write_text("x")
    (tmp_path / "runs.sh").chmod(0o755)
    found = exit_hint(code, shell="", unstaged=unstaged, folder=str(tmp_path), log_tail=log.format(folder=tmp_path))
    assert told in found and bool(told) == bool(found)


def test_of_several_complaints_the_last_one_is_meant() -> None:
    log = "env: 'python2': No such file or directory\nx.sh: line 3: samtools: command not found\n"
    assert "`samtools`" in exit_hint(127, shell="", unstaged=[], folder="", log_tail=log)
    assert "`python2`" in exit_hint(127, shell="", unstaged=[], folder="", log_tail="\n".join(log.split("\n")[::-1]))


@ONE_LOOP
async def test_a_program_that_is_not_installed_is_named_with_the_host(server: Server) -> None:
    for command in ("no-such-program a b", "no-such-program a | cat"):
        fault = (await server.outcome(await server.shell(command))).fault
        assert fault is not None and fault.exit_code == 127
        assert f"`no-such-program` is not installed on {HOST}" in fault.message
