"""The check itself can fail, and says what did."""

import itertools
import os
import sys
from pathlib import Path
from typing import Any

import pytest

import check
from tests.longest_first import LONGEST, longest_first
from tests.marked import APART, SERVERS, WHOLLY_APART, files_with
from tests.servers import gridengine, ode, opensearch, openssh, slurm
from tests.shape.source import ROOT


def stage(name: str, code: str, *, nothing_to_do: tuple[int, ...] = ()) -> check.Stage:
    return check.Stage(name, "tests", [sys.executable, "-c", code], nothing_to_do=nothing_to_do)


def test_one_failed_stage_fails_the_check_and_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    wanted = [
        stage("good", "print('unseen')"),
        stage("bad", "print('what was wrong'); raise SystemExit(3)"),
        check.Stage("loud", "tests", [sys.executable, "-c", "print('12 passed in 1 s')"], quiet=False),
    ]
    results = check.Runs(dict(os.environ)).all(wanted)
    assert check.summary(results, 1.0) == 1
    printed = capsys.readouterr().out
    assert "unseen" not in printed
    assert "what was wrong" in printed
    assert "2 of 3 stages passed" in printed
    assert "FAIL  bad" in printed
    assert "bad again: " in printed
    assert "ok    loud" in printed and "   12 tests" in printed


def test_what_wants_the_machine_for_itself_begins_when_all_others_have_ended(tmp_path: Path) -> None:
    def noting(name: str) -> list[str]:
        code = f"import pathlib, time; time.sleep(0.3); open({str(tmp_path / 'ended')!r}, 'a').write('{name} ')"
        return [sys.executable, "-c", code]

    wanted = [
        check.Stage("alone", "tests", noting("alone"), quiet=False, alone=True),
        check.Stage("first", "tests", noting("first")),
        check.Stage("second", "tests", noting("second")),
        check.Stage("loud", "tests", noting("loud"), quiet=False),
    ]
    assert all(result.ok for result in check.Runs(dict(os.environ)).all(wanted))
    *others, last = (tmp_path / "ended").read_text().split()
    assert (sorted(others), last) == (["first", "loud", "second"], "alone")


def test_a_quiet_stage_that_follows_another_begins_when_that_one_has_ended(tmp_path: Path) -> None:
    made = tmp_path / "made"
    wanted = [
        stage("makes", f"import pathlib, time; time.sleep(0.3); pathlib.Path({str(made)!r}).touch()"),
        stage("uses", f"import pathlib; assert pathlib.Path({str(made)!r}).exists()")._replace(follows=True),
        stage("beside", "pass"),
    ]
    assert [len(row) for row in check.quiet_rows(wanted)] == [2, 1]
    results = check.Runs(dict(os.environ)).all(wanted)
    assert [(result.stage.name, result.ok) for result in results] == [("makes", True), ("uses", True), ("beside", True)]


@pytest.mark.parametrize("processes", [1, 2, 3, 7])
def test_the_longest_tests_are_those_with_which_the_processes_begin(processes: int) -> None:
    items = [f"{file} {number}" for file in ("test_a.py", *sorted(LONGEST), "test_z.py") for number in range(2)]
    ordered = longest_first(items, lambda item: item.split()[0], processes)
    assert sorted(ordered) == sorted(items)
    shares, left = [], list(ordered)
    for others in range(processes, 0, -1):  # as pytest-xdist hands them out
        share, left = left[: len(left) // others], left[len(left) // others :]
        shares.append(share)
    wanted = [f"{file} {number}" for file in LONGEST for number in range(2)]
    assert [share[0] for share in shares] == wanted[:processes]
    assert not left


def test_every_file_of_the_longest_tests_is_there() -> None:
    assert set(LONGEST) <= {path.name for path in (ROOT / "tests" / "e2e").rglob("test_*.py")}


def test_what_a_quiet_stage_tells_is_shown_and_nothing_else_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    check.Runs(dict(os.environ)).one(stage("counts", "print('unseen'); print('told: 12 requests')"))
    printed = capsys.readouterr().out
    assert "counts: 12 requests\n" in printed
    assert "unseen" not in printed


def test_a_stage_with_nothing_to_do_is_no_failure() -> None:
    result = check.Runs(dict(os.environ)).one(stage("none", "raise SystemExit(5)", nothing_to_do=(5,)))
    assert result.ok
    assert check.summary([result], 1.0) == 0


def test_what_a_machine_cannot_do_is_said_to_be_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert check.possible("slurm", "")
    assert not check.possible("slurm", "slurmctld (apt-get install slurm-wlm munge)")
    assert capsys.readouterr().out == (
        "left out  slurm: this machine lacks slurmctld (apt-get install slurm-wlm munge)\n"
    )


def chosen(*words: str) -> list[str]:
    """The marks that each stage of tests selects."""
    stages = check.stages(Path("programs"), check._options(words))
    return [listed.command[listed.command.index("-m", 3) + 1] for listed in stages if "pytest" in listed.command]


@pytest.mark.parametrize(
    ("name", "server"), [("slurm", slurm), ("gridengine", gridengine), ("ode", ode), ("openssh", openssh)]
)
def test_tests_that_need_a_server_run_in_their_own_stage_and_in_no_other(name: str, server: Any) -> None:
    given = dict.fromkeys(["full", "waiting", "alone", *SERVERS], False) | {"full": True, name: True}
    taking = [each for each in [*chosen(), *chosen("--full")] if eval(each, {}, given)]  # our own words
    assert len(taking) == (0 if server.lacking() else 1)
    assert all(each.startswith(name) for each in taking)


def test_the_full_check_leaves_no_test_out_and_runs_none_twice() -> None:
    marks = ["full", "waiting", "alone", *(["opensearch"] if not opensearch.lacking() else [])]
    stages = chosen("--full")
    for on in itertools.product([False, True], repeat=len(marks)):
        given = dict.fromkeys(SERVERS, False) | dict(zip(marks, on, strict=True))
        times = sum(eval(each, {}, given) for each in stages)  # our own words, not anybody's
        assert times == 1, given


def test_a_stage_reads_the_files_that_name_its_mark_and_the_folders_whose_conftest_does(tmp_path: Path) -> None:
    texts = {
        "conftest.py": "item.add_marker(pytest.mark.rare)",
        "e2e/test_all.py": "",
        "a/conftest.py": "marks = {'b': pytest.mark.rare}",
        "a/test_of_the_folder.py": "@pytest.mark.rare",
        "b/test_named.py": "pytestmark = pytest.mark.rare",
        "b/test_other.py": "@pytest.mark.scarce",
        "b/helper.py": "mark.rare",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)

    def found(mark: str) -> list[str]:
        return [str(path.relative_to(tmp_path)) for path in files_with(mark, tmp_path)]

    assert found("rare") == ["a", "b/test_named.py"]
    assert found("scarce") == ["b/test_other.py"]
    assert found("waiting") == ["e2e"]


def test_what_the_stage_of_all_others_does_not_read_has_stages_of_its_own() -> None:
    (all_others,) = (
        each for each in check.stages(Path("programs"), check._options(["--full"])) if each.name == "tests"
    )
    unread = [word.removeprefix("--ignore=") for word in all_others.command if word.startswith("--ignore=")]
    assert unread == list(WHOLLY_APART)
    whole = {path for mark in APART for path in files_with(mark)}
    assert {ROOT / folder for folder in unread} <= whole


def test_the_short_check_leaves_out_what_is_for_the_full_one() -> None:
    first, *walk = chosen()
    assert first.startswith("not full")
    assert walk in ([], ["web and short"])  # where the web app is built, and a browser is there


def test_stages_may_write_bytecode_whatever_the_caller_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    assert "PYTHONDONTWRITEBYTECODE" not in check.environ(Path("programs"), check._options([]))
