"""The command line as a whole: its help is quick, its commands are where the table says, and the reference has them."""

import functools
import importlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mendflow import wiring
from mendflow.cli.command_table import COMMANDS, ELSEWHERE, GROUPS
from mendflow.cli.main import load
from mendflow.cli.option_hints import OF_COMMANDS
from mendflow.cli.server_file import find_server
from mendflow.stores.file_lock import FileLock
from mendflow.wiring import ServerAnnouncement, write_server_file
from tests.cli.conftest import Shell
from tests.cli.in_process import run_command
from tests.patience import PATIENCE_S

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "cli.md"
HEAVY = ("litestar", "uvicorn", "aiohttp", "mendflow.wiring", "mendflow.server.app", "mendflow.sim")


def mendflow(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    told = {"PATH": "", "COLUMNS": "80", "NO_COLOR": "1", **environment}
    return run_command(words, folder=Path.cwd(), environment=told)


def inner_commands(group: Any) -> list[tuple[str, Any]]:
    return [(name, group.get_command(None, name)) for name in getattr(group, "commands", {})]


@functools.cache
def all_commands() -> dict[str, Any]:
    """Every command by the words that call it, those inside groups too."""
    found: dict[str, Any] = {}
    waiting = [(name, load(name)) for name in reversed(COMMANDS)]
    while waiting:
        name, command = waiting.pop()
        found[name] = command
        waiting += [(f"{name} {inner}", below) for inner, below in reversed(inner_commands(command))]
    return found


def test_help_names_every_command_within_eighty_columns() -> None:
    told = mendflow("--help")
    assert told.returncode == 0
    for name in COMMANDS:
        assert re.search(rf"\b{name}\b", told.stdout)
    assert max(map(len, told.stdout.splitlines())) <= 80


@pytest.mark.parametrize("columns", ["80", "100"])
def test_help_of_every_command_fits_the_screen_and_cuts_nothing(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    for name, command in all_commands().items():
        context = command.make_context(f"mendflow {name}", [], resilient_parsing=True, max_content_width=100)
        told = command.get_help(context)
        assert "…" not in told.replace("`…`", ""), name
        assert max(map(len, told.splitlines())) <= int(columns), name
        words = set(re.findall(r"--[a-z0-9-]+", told))
        for param in command.params:
            assert getattr(param, "hidden", False) or {each for each in param.opts if each.startswith("--")} <= words


def test_the_flow_to_begin_with_has_no_problem_and_runs(shell: Shell) -> None:  # DU-1
    shell.write("survey.yaml", shell.ok("flows", "init"))
    assert shell.ok("check", "survey.yaml").strip() == "1 flow, no problems"
    told = shell.ok("run", "survey.yaml", "--input", 'nights=["wed"]', "--quiet")
    assert "rows: 1" in told and "2 done" in told


@pytest.mark.parametrize("words", [[], ["run"], ["admin"], ["admin", "tokens"], ["rules", "add"]])
def test_help_is_a_command_too(words: list[str]) -> None:
    told = mendflow("help", *words)
    assert told.returncode == 0
    assert told.stdout == mendflow(*words, "--help").stdout


@pytest.mark.parametrize("words", [["--help"], ["check", "--help"], ["--version"], ["admin", "completion", "bash"]])
def test_quick_commands_do_not_load_the_servers_machinery(words: list[str]) -> None:
    script = (
        "import sys\nfrom mendflow.cli.main import main\n"
        f"try:\n    main({words!r})\nexcept SystemExit as end:\n    assert not end.code, end.code\n"
        f"loaded = [name for name in {HEAVY!r} if name in sys.modules]\nassert not loaded, loaded\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr


@pytest.mark.full
@pytest.mark.parametrize(
    ("words", "heavy"),
    [
        (["run", "one.yaml", "--quiet"], ("litestar", "aiohttp", "pydantic", "mendflow.formats.bpel")),
        (["cases"], ("litestar", "uvicorn", "aiohttp", "pydantic", "mendflow.formats.bpel")),
        pytest.param(
            *(["items", "last"], ("litestar", "uvicorn", "aiohttp", "pydantic", "mendflow.formats.bpel")),
            marks=pytest.mark.full,
        ),
    ],
)
def test_a_command_in_a_data_folder_speaks_no_http_with_itself(
    tmp_path: Path, words: list[str], heavy: tuple[str, ...]
) -> None:
    (tmp_path / "one.yaml").write_text("name: one\njobs:\n  hello:\n    run: echo hello\n")
    if words[0] != "run":
        assert run_command(["run", "one.yaml"], folder=tmp_path, environment=dict(os.environ)).returncode == 0
    script = (
        "import sys\nfrom mendflow.cli.main import main\n"
        f"try:\n    main({words!r})\nexcept SystemExit as end:\n    assert not end.code, end.code\n"
        f"loaded = [name for name in {heavy!r} if name in sys.modules]\nassert not loaded, loaded\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert done.returncode == 0, done.stderr


def test_a_command_that_asks_a_running_server_does_not_load_one() -> None:
    script = (
        "import sys\nfrom mendflow.cli.main import main\n"
        "try:\n    main(['cases', '--server', 'http://127.0.0.1:9'])\n"
        "except SystemExit as end:\n    assert end.code == 4\n"
        "assert 'mendflow.wiring' not in sys.modules\nassert 'litestar' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr


def test_a_servers_address_is_found_while_it_holds_the_folder(tmp_path: Path) -> None:
    written = ServerAnnouncement(url="http://127.0.0.1:1", pid=os.getpid(), token="t")
    write_server_file(tmp_path, written)
    assert find_server(tmp_path) is None
    lock = FileLock(tmp_path / "store.db")
    lock.acquire()
    found = find_server(tmp_path)
    assert found is not None
    assert (found.url, found.pid, found.token) == (written.url, written.pid, written.token)
    assert wiring.find_server(tmp_path) == written
    lock.release()
    assert find_server(tmp_path) is None


@pytest.mark.parametrize("pid", ["1", "-1", "12345678901234567890", '"x"'])
def test_an_address_that_somebody_else_left_is_not_believed(tmp_path: Path, pid: str) -> None:
    lock = FileLock(tmp_path / "store.db")
    lock.acquire()
    (tmp_path / "server.json").write_text(f'{{"url": "http://127.0.0.1:9", "pid": {pid}}}')
    assert find_server(tmp_path) is None
    assert wiring.find_server(tmp_path) is None
    lock.release()


def test_the_table_says_what_the_commands_say() -> None:
    for name, entry in COMMANDS.items():
        assert load(name).help == entry.help
    for entries in GROUPS.values():
        for name, entry in entries.items():
            assert load(name, entries).help == entry.help


def test_every_module_of_commands_has_only_commands_that_can_be_reached() -> None:
    reached = set(COMMANDS) | {path.split()[-1] for path in all_commands()}
    for module in {entry.module for name, entry in COMMANDS.items() if name not in GROUPS}:
        app = importlib.import_module(module).app
        names = {command.name for command in app.registered_commands} | {group.name for group in app.registered_groups}
        assert names <= reached
        assert names >= {name for name, entry in COMMANDS.items() if entry.module == module}


def test_there_are_no_more_than_thirty_seven_commands_on_top() -> None:
    assert len(COMMANDS) <= 37


@pytest.mark.parametrize(
    ("word", "ours"),
    [
        ("kill", "mendflow cancel CASE"),
        ("status", "mendflow cases"),
        ("dag", "mendflow flows graph"),
        ("init", "mendflow flows init > FLOW.yaml"),
        ("new", "mendflow flows init > FLOW.yaml"),
        ("unlock", "mendflow resume CASE"),
        ("retry", "mendflow rerun CASE --again JOB"),
        ("backfill", "mendflow schedules backfill SCHEDULE"),
    ],
)
def test_a_word_of_another_tool_is_answered_with_ours(word: str, ours: str) -> None:
    told = mendflow(word, "x")
    assert told.returncode == 2
    assert f"mendflow has no command `{word}`; " in told.stderr and ours in " ".join(told.stderr.split())


def test_an_answer_to_a_word_of_another_tool_names_a_command_that_is_there() -> None:
    for word, answer in ELSEWHERE.items():
        assert word not in COMMANDS
        for named in re.findall(r"mendflow ([a-z]+(?: [a-z]+)?)", answer):
            assert named in all_commands() or named.split()[0] in COMMANDS, f"{word}: {named}"


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("run", "run wants a flow file: mendflow run FLOW"),
        ("cancel", "cancel wants a case: mendflow cancel CASE; `last` is the newest"),
        ("run x.yaml --cores 4", "how many jobs run at a time is -j N"),
        ("run x.yaml -resume", "mendflow resume CASE goes on with one that was stopped"),
        ("run x.yaml -with-report a.html", "run has no option -with-report; the page of the case is written anyway"),
        ("run x.yaml -with-docker ubuntu", "`container: ubuntu:24.04` at a job"),
        ("run x.yaml --use-conda", "say it at the job: `environment: env.yaml`"),
        ("run x.yaml --sample 4", "an input of the flow is --input sample=VALUE"),
        ("run x.yaml --no-cash", "did you mean --no-cache?"),
        ("run x.yaml merge", "run takes one flow file, and merge is too much; a run does the whole flow"),
        ("--cores 4", "a command comes before --cores, as in mendflow run FLOW; of run: how many jobs"),
        ("-n x.yaml", "a command comes before -n, as in mendflow run FLOW"),
        ("cases --limt 3", "did you mean --limit?"),
        ("worklist complete", "worklist complete wants TASK"),
        ("admin foo", "mendflow admin has no command `foo`; mendflow admin --help lists"),
        ("describe last", "mendflow items CASE"),
        ("webserver", "mendflow serve"),
    ],
)
def test_a_guess_of_someone_who_knows_another_tool_is_answered_in_a_line(words: str, answer: str) -> None:
    told = mendflow(*words.split(), COLUMNS="400")
    assert told.returncode == 2, told.stderr
    assert answer in told.stderr and len(told.stderr.splitlines()) == 1, told.stderr


def test_an_unknown_command_is_told_with_what_was_meant() -> None:
    told = mendflow("rrun")
    assert told.returncode == 2
    assert "rerun" in told.stderr
    assert told.stdout == ""


def test_a_word_that_an_option_does_not_know_is_told_with_those_it_knows() -> None:
    told = mendflow("cases", "--status", "foo")
    assert told.returncode == 2
    assert "running, suspended, completed, failed, cancelled" in told.stderr
    offered = mendflow(_MENDFLOW_COMPLETE="complete_bash", COMP_WORDS="mendflow cases --status c", COMP_CWORD="3")
    assert offered.stdout.split() == ["completed", "cancelled"]


def test_a_python_file_with_several_flows_names_them_main_first(tmp_path: Path) -> None:
    file = tmp_path / "pf.py"
    file.write_text(
        "from mendflow import flow, job\n@job\ndef one() -> int:\n    return 1\n"
        "@flow\ndef inner():\n    return one()\n@flow\ndef main():\n    return inner()\n"
    )
    told = mendflow("check", str(file))
    assert told.returncode == 0, told.stderr
    assert f"{file}: main, inner" in told.stdout
    refused = mendflow("run", str(file))
    assert refused.returncode == 2
    assert f"main, inner; choose one, as {file}:main" in refused.stderr


def test_shells_complete_commands_and_options() -> None:
    commands = mendflow(_MENDFLOW_COMPLETE="complete_bash", COMP_WORDS="mendflow re", COMP_CWORD="1")
    assert set(commands.stdout.split()) == {"resume", "rerun", "report"}
    options = mendflow(_MENDFLOW_COMPLETE="complete_bash", COMP_WORDS="mendflow admin tokens line --r", COMP_CWORD="4")
    assert options.stdout.split() == ["--role"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_completion_script(shell: str) -> None:
    told = mendflow("admin", "completion", shell)
    assert told.returncode == 0
    assert "_MENDFLOW_COMPLETE" in told.stdout


@pytest.mark.parametrize(("words", "title"), [((), "flow"), (("exlet",), "exlet"), (("rules",), "rule file")])
def test_the_schema_of_each_kind_of_file_is_printed(words: tuple[str, ...], title: str) -> None:
    told = mendflow("flows", "schema", *words)
    assert told.returncode == 0
    assert json.loads(told.stdout)["title"].startswith(f"mendflow {title}")


def test_every_reading_command_can_speak_json() -> None:
    silent = {
        "flows schema",
        "flows init",
        "learn",
        "serve",
        "pilot",
        "admin completion",
        "report",
        "worklist",
        "sim",
        "data",
        "admin",
        "shell",
    }
    for name, command in all_commands().items():
        has = any("--json" in param.opts for param in command.params)
        assert has or name in silent, name
    assert any("--json" in param.opts for param in load("worklist").params)


def test_no_command_takes_a_token_as_a_word() -> None:
    for command in all_commands().values():
        assert not [param for param in command.params if "--token" in param.opts]


def sections() -> dict[str, str]:
    parts = re.split(r"^### mendflow (.+)$", REFERENCE.read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_the_reference_has_every_command_and_no_other() -> None:
    assert list(sections()) == list(all_commands())


def test_the_reference_has_every_word_of_every_command_and_no_other() -> None:
    for name, text in sections().items():
        command = all_commands()[name]
        assert command.help in text, name
        listed = [param for param in command.params if param.param_type_name == "option"]
        options = {opt for param in listed for opt in param.opts}
        refusals = {opt for param in listed for opt in param.secondary_opts}
        told = set(re.findall(r"`(--?[a-z][a-z0-9-]*)", text))
        assert told - refusals == options - {"--help", "-h"}, name
        for param in command.params:
            if param.param_type_name == "argument":
                assert f"`{param.metavar}`" in text, name
            if param.param_type_name == "option" and param.name not in ("json", "server", "token_file", "data", "help"):
                assert f"| {param.help} |" in text, (name, param.name)


def test_the_reference_has_every_exit_code() -> None:
    exits = importlib.import_module("mendflow.cli.exit_codes").ExitCode
    codes = {int(code) for code in re.findall(r"^\| (\d+) \|", REFERENCE.read_text(), flags=re.MULTILINE)}
    assert codes == {int(code) for code in exits}


@pytest.mark.parametrize("word", ["version", "--version"])
def test_the_version_is_told_without_loading_the_command_line(word: str) -> None:
    program = (
        f"import sys; sys.argv = ['mendflow', '{word}']; import mendflow.__main__ as m; m.main(); print(*sys.modules)"
    )
    told = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE_S, check=True
    ).stdout
    version, _, loaded = told.partition("\n")
    assert version.startswith("mendflow ") and not {"typer", "rich", "msgspec", "mendflow.cli"} & set(loaded.split())


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("run f.yaml --force", "--again JOB runs one job and all that depends on it, and --no-cache runs every job"),
        ("run f.yaml --forcerun align", "--again JOB runs one job and all that depends on it"),
        ("rerun last --from align", "--again JOB runs a job and all that depends on it"),
        ("run f.yaml --rerun-incomplete", "no half-made result is ever used"),
        ("run f.yaml -profile slurm", "run has no option -profile; a cluster is a site of a server"),
        ("run f.yaml -report x", "options of several letters have two dashes: --report"),
        ("run f.yaml -k", "jobs that do not need a failed one run to their end anyway"),
        ("run f.yaml --keep-going", "jobs that do not need a failed one run to their end anyway"),
        ("run f.yaml --cores 4", "how many jobs run at a time is -j N"),
        ("run f.yaml --rerun", "mendflow rerun CASE runs a case again"),
        ("run f.yaml -resume", "mendflow resume CASE goes on with one that was stopped"),
        ("run f.yaml -v", "mendflow logs JOB show more"),
        ("run f.yaml -np", "run has no option -p; --dry-run shows the commands"),
        ("run f.yaml --config a=b", "what a flow is given is --input NAME=VALUE, or --inputs FILE"),
        ("run f.yaml a=b c=d", "mendflow run FLOW --input a=b --input c=d"),
        ("run -s f.yaml", "the flow file is given without an option"),
        ("run f.yaml --profile slurm", "a cluster is a site of a server"),
        ("run f.yaml --detach", "mendflow start FLOW leaves the case to it"),
        ("run f.yaml --outdir x", "where output files go is --output-dir DIR"),
        ("f.yaml", "to run the flow: mendflow run f.yaml"),
        ("domains add other", "mendflow domains invite NAME on a server of one, and mendflow domains connect"),
        ("domains remove other", "to end a connection: mendflow domains disconnect NAME"),
        ("rerun last --cached", "results of unchanged jobs come from the cache anyway"),
        ("logs x --tail 3", "mendflow logs JOB | tail -n 20"),
        ("cases -n 3", "how many are shown is --limit N"),
        ("flows graph f.yaml -v", "flows graph has no option -v"),
    ],
)
def test_an_option_of_another_tool_is_answered_with_ours(words: str, told: str) -> None:
    done = mendflow(*words.split())
    assert done.returncode == 2
    assert told in " ".join(done.stderr.split())


def test_an_option_that_no_tool_has_is_told_with_where_ours_are() -> None:
    done = mendflow("cases", "--nothing")
    assert done.returncode == 2
    assert "cases has no option --nothing; mendflow cases --help has those there are" in " ".join(done.stderr.split())


def test_no_hint_is_about_an_option_that_the_command_has() -> None:
    for name, hints in OF_COMMANDS.items():
        group, _, inner = name.partition(" ")
        command = load(group).commands[inner] if inner else load(group)
        own = {word for param in command.params for word in param.opts}
        assert not own & hints.keys(), name
