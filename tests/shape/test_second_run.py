"""The second run of failed tests in the full check: real runs of pytest, on small folders of tests."""

import ast
import os
import sys
from pathlib import Path

import pytest

import check
from tests.marked import TESTS
from tools import second_run
from tools.environment import ROOT
from tools.second_run import FAILED_MAX, PLUGIN, UNSTEADY_MAX, ListedTests, refusal

ONCE = """
import pathlib

def fails_once(name):
    mark = pathlib.Path(__file__).with_name(name)
    if not mark.exists():
        mark.touch()
        raise AssertionError(f"{name} met a busy machine")
"""


PLUGINS_OF_TESTS = ("-p", "xdist.plugin", "-p", "_hypothesis_pytestplugin")
"""Those that the runs here need. All that are installed take four times as long to load."""


def stage(folder: Path, text: str, *words: str, quiet: bool = False, name: str = "test_made_up.py") -> check.Stage:
    """A stage of tests with this text, which may use `fails_once`."""
    path = folder / name
    path.write_text(ONCE + text)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n    law: no second run\naddopts = -q --strict-markers\n")
    begin = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *PLUGINS_OF_TESTS, *PLUGIN)
    return check.Stage("made-up", "tests", [*begin, *words, name], quiet, again=begin)


def outcome(folder: Path, stages: list[check.Stage], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    run = check.Runs({**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}, folder)
    code = check.summary(run.again(run.all(stages)), 1.0)
    return code, capsys.readouterr().out


@pytest.mark.full
@pytest.mark.parametrize(("quiet", "workers"), [(True, ()), (False, ("-n", "2"))])
def test_what_passes_by_itself_is_told_as_unsteady_with_its_first_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], quiet: bool, workers: tuple[str, ...]
) -> None:
    text = """
import pytest

def test_steady(): pass

@pytest.mark.parametrize("how", ["a - b", "c::d/e"])
def test_sometimes(how): fails_once("sometimes" + str(len(how)))
"""
    code, printed = outcome(tmp_path, [stage(tmp_path, text, *workers, quiet=quiet)], capsys)
    assert code == 0
    assert "ok    made-up" in printed and "2 unsteady" in printed
    assert "sometimes5 met a busy machine" in printed
    told = [line for line in printed.splitlines() if line.startswith("unsteady")]
    assert len(told) == 2 and all("test_made_up.py::test_sometimes[" in line for line in told)
    assert all("failed in made-up, passed by itself: " in line and " -m pytest " in line for line in told)


def test_what_fails_twice_fails_the_check_and_so_does_the_rest_of_its_stage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "\ndef test_sometimes(): fails_once('x')\n\ndef test_never(): assert 0, 'it is broken'\n"
    code, printed = outcome(tmp_path, [stage(tmp_path, text)], capsys)
    assert code == 1
    assert "FAIL  made-up" in printed and "0 of 1 stages passed" in printed
    assert "failed twice  test_made_up.py::test_never: " in printed
    assert "unsteady  test_made_up.py::test_sometimes" in printed


@pytest.mark.full
@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            "import pytest\n@pytest.mark.law\ndef test_law(): fails_once('x')\n",
            "one violation in many runs",
        ),
        (
            "import hypothesis, hypothesis.strategies as st\n"
            "@hypothesis.given(st.just(1))\ndef test_property(number): fails_once('x')\n",
            "one violation in many runs",
        ),
        ("import os\ndef test_crash():\n    fails_once('y') if os.path.exists('x') else os._exit(9)\n", "ended with 9"),
        ("import nothing_of_this_name\n", "could not be run to its end: test_made_up.py"),
        ("import pytest\ndef test_end():\n    pytest.exit('enough', returncode=1)\n", "no list of failed tests"),
        (
            f"import pytest\n@pytest.mark.parametrize('each', range({FAILED_MAX + 1}))\n"
            "def test_many(each): fails_once(f'x{each}')\n",
            f"{FAILED_MAX + 1} tests failed, more than {FAILED_MAX}",
        ),
    ],
    ids=["law", "property", "crash", "collection", "ended", "many"],
)
def test_what_is_never_excused_is_not_run_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, why: str
) -> None:
    code, printed = outcome(tmp_path, [stage(tmp_path, text)], capsys)
    assert code == 1
    assert why in printed and "no second run of made-up: " in printed
    assert "once more, by themselves" not in printed and "unsteady" not in printed


@pytest.mark.full
def test_a_worker_that_died_is_never_excused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = """
import os

def test_crash():
    try:
        fails_once("crash")
    except AssertionError:
        os._exit(9)

def test_other(): pass
"""
    code, printed = outcome(tmp_path, [stage(tmp_path, text, "-n", "2")], capsys)
    assert code == 1 and "it could not be run to its end: test_made_up.py::test_crash" in printed


@pytest.mark.full
def test_more_than_a_few_unsteady_tests_fail_the_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = []
    for name, many in (("test_one.py", UNSTEADY_MAX), ("test_two.py", 1)):
        many_tests = f"import pytest\n@pytest.mark.parametrize('each', range({many}))\n"
        text = many_tests + "def test_x(each): fails_once(__name__ + str(each))\n"
        made.append(stage(tmp_path, text, quiet=True, name=name))
    code, printed = outcome(tmp_path, made, capsys)
    assert "2 of 2 stages passed" in printed
    assert code == 1 and f"FAIL  {UNSTEADY_MAX + 1} tests are unsteady, more than {UNSTEADY_MAX}" in printed


@pytest.mark.full
def test_the_second_run_begins_when_all_stages_have_ended(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    unsteady = stage(tmp_path, "\ndef test_x(): fails_once('x')\n", quiet=True)
    last = check.Stage("alone", "tests", [sys.executable, "-c", "print('the last of all')"], quiet=False, alone=True)
    code, printed = outcome(tmp_path, [unsteady, last], capsys)
    assert code == 0
    assert printed.index("the last of all") < printed.index("once more, by themselves, of made-up")


def test_a_stage_that_is_not_of_tests_has_no_second_run() -> None:
    full = check.stages(Path("programs"), check._options(["--full"]))
    assert {each.name for each in full if not each.again} >= {"format", "lint", "types", "docs"}
    of_pytest = [each for each in full if "pytest" in each.command]
    assert of_pytest and all(each.again[:3] == tuple(each.command[:3]) for each in of_pytest)
    assert not any(each.again for each in check.stages(Path("programs"), check._options([])))


def test_a_test_that_was_not_run_again_has_not_passed() -> None:
    assert second_run.steady_now(["a", "b"], ListedTests(passed=frozenset({"a"}))) == ["a"]
    assert second_run.steady_now(["a"], ListedTests(passed=frozenset({"a"}), broken=("file",))) == []
    assert second_run.steady_now(["a"], None) == []
    assert refusal(0, ListedTests()) != "" != refusal(1, None)


def test_storms_of_kills_are_laws() -> None:
    """Whoever adds one of these files says so in it."""
    files = [*(TESTS / "e2e").glob("test_*_kill.py"), *(TESTS / "e2e").rglob("test_chaos*.py")]
    assert len(files) >= 10
    for path in files:
        marks = [
            ast.unparse(node.value)
            for node in ast.parse(path.read_text()).body
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"
        ]
        assert any("mark.law" in each for each in marks), f"{path} has no pytestmark = pytest.mark.law"
