"""What a command says when something is wrong: one sentence, a number for scripts, and the place."""

import errno
from pathlib import Path

import pytest

from mendflow.cli.exit_codes import ExitCode, report_error
from mendflow.cli.printing import print_table
from mendflow.cli.problems import show_problems
from mendflow.core.model.errors import (
    BadFlow,
    Conflict,
    Forbidden,
    InternalError,
    InvalidRequest,
    NotFound,
    Problem,
    RequestError,
    StoreUnavailable,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (BadFlow(problems=["x"]), ExitCode.BAD_INPUT),
        (InvalidRequest("x"), ExitCode.BAD_INPUT),
        (RequestError("x"), ExitCode.BAD_INPUT),
        (StoreUnavailable("x"), ExitCode.ENVIRONMENT),
        (InternalError("x"), ExitCode.ENVIRONMENT),
        (OSError(errno.ENOSPC, "No space left on device", "store.db"), ExitCode.ENVIRONMENT),
        (Unreachable("x"), ExitCode.UNREACHABLE),
        (NotFound("x"), ExitCode.NOT_FOUND),
        (Conflict("x"), ExitCode.REFUSED),
        (Forbidden("x"), ExitCode.REFUSED),
        (Unauthorized("x"), ExitCode.REFUSED),
        (TooManyRequests("x", retry_after_s=1), ExitCode.REFUSED),
        (KeyboardInterrupt(), ExitCode.INTERRUPTED),
        (ZeroDivisionError("x"), ExitCode.BUG),
    ],
)
def test_each_kind_of_wrong_has_its_number(
    error: BaseException, code: ExitCode, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report_error(error) is code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "mendflow: " in captured.err
    assert "Traceback" not in captured.err


def test_a_problem_is_shown_in_its_line_with_a_caret(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flow = tmp_path / "flow.yaml"
    flow.write_text("name: night\njobs:\n  a:\n    rnu: echo\n")
    where = str(flow)
    show_problems(
        [
            Problem(file=where, line=4, column=5, message="unknown key `rnu`", suggestion="`run`"),
            Problem(file=where, line=99, column=1, message="beyond the end"),
            Problem(file="gone.yaml", line=1, column=1, message="not there"),
        ]
    )
    assert capsys.readouterr().err.splitlines() == [
        f"{where}:4:5: unknown key `rnu` (did you mean `run`?)",
        "    4 |     rnu: echo",
        "      |     ^",
        f"{where}:99:1: beyond the end",
        "gone.yaml:1:1: not there",
    ]


def test_a_table_fits_the_screen_and_obeys_no_escapes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    rows = [("night-7f3k:align[3]", "failed", "\x1b[31m[bold]exit code 3[/bold] " + "x" * 200)]
    print_table(("item", "state", "remark"), rows)
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    assert "night-7f3k:align[3]" in shown
    assert "[bold]exit code 3[/bold]" in shown
    assert "\x1b" not in shown


def test_a_column_that_is_wanted_whole_goes_on_in_further_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    words = [f"word{number}" for number in range(100)]
    print_table(("claim", "seen"), [("7.1", " ".join(words)), ("7.2", "short")], whole=True)
    first, *lines = capsys.readouterr().out.splitlines()
    assert first.split() == ["claim", "seen"]
    assert max(map(len, lines)) <= 40
    assert " ".join(lines).split() == ["7.1", *words, "7.2", "short"]
    assert all(line.startswith(" " * 7) for line in lines[1:-1])
