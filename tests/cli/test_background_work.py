"""What a script starts in the background and does not wait for is never cut off quietly."""

import pytest

from tests.cli.conftest import Shell

ADVICE = "`wait` at the end of a script waits for what it has started"


def write(shell: Shell, command: str, *, files: str = "") -> None:
    declared = f"    files: {files}\n    inputs: {{in.txt: in.txt}}\n" if files else ""
    shell.write("in.txt", "1\n")
    shell.write("work.yaml", f"jobs:\n  work:\n    retries: 0\n{declared}    run: |\n      {command}\n")


@pytest.mark.full
def test_a_process_that_was_still_running_is_named_in_the_summary_in_why_and_in_the_log(shell: Shell) -> None:  # DU-1
    write(shell, "sleep 600 & echo done > out.txt", files="out.txt")
    sentence = "its script ended while `sleep 600` was still running in the background, and was ended too"
    assert f"work: {sentence}" in shell.ok("run", "work.yaml", "--quiet")
    assert sentence in shell.ok("why", "last:work") and ADVICE in shell.ok("logs", "last:work")
    again = shell.ok("run", "work.yaml", "--quiet")
    assert "1 done" in again and "not used without --cached: its script ended while" in again, "it is not cached"


@pytest.mark.full
@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("sleep 600 > out.txt & sleep 0.1", "out.txt may be incomplete"),
        ("(sleep 600; echo late > out.txt) &", "(out.txt) is not there; its script ended while `sleep 600` was still"),
    ],
)
def test_a_declared_file_that_was_still_being_made_fails_the_job(shell: Shell, command: str, told: str) -> None:  # DU-1
    write(shell, command, files="out.txt")
    failed = shell("run", "work.yaml", "--quiet")
    assert failed.returncode == 1
    assert told in failed.stdout and ADVICE in failed.stdout


@pytest.mark.parametrize(
    "command",
    [
        "echo whole > >(sleep 0.2; cat > out.txt)",
        "(sleep 0.2; echo whole > out.txt) &",
        "echo whole > out.txt; setsid sleep 600 &",
        "(sleep 0.1; echo whole > out.txt) & wait",
    ],
    ids=["a substituted process", "work that is about to end", "a daemon", "work that is waited for"],
)
def test_what_ends_shortly_after_its_script_is_waited_for_and_daemons_are_not_work(  # DU-1
    shell: Shell, command: str
) -> None:
    write(shell, command, files="out.txt")
    told = shell.ok("run", "work.yaml", "--quiet")
    assert "script ended" not in told and "1 done" in told
