"""What a job printed, and the folder of one that failed, on the command line."""

import json
import subprocess
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from mendflow.cli import job_logs, log_reading
from mendflow.cli.options import ServerTarget
from mendflow.core.model.ids import CaseId, ItemId, JobId
from mendflow.core.model.views import ItemView, LogView
from tests.cli.conftest import Shell
from tests.patience import PATIENCE_S

FLOW = """
name: chatty
jobs:
  talk:
    retries: 1
    env: {COLOUR: blue, ARCHIVE_TOKEN: hush}
    run: |
      seq -f "attempt $MENDFLOW_ATTEMPT line %.0f" 1 30000
      echo half > part.txt
      exit 3
"""


@pytest.mark.full
def test_each_attempt_is_read_whole_and_looked_into_after_its_pilot_has_ended(shell: Shell) -> None:  # DU-4
    shell.write("chatty.yaml", FLOW)
    assert shell("run", "chatty.yaml", "-q").returncode == 1
    for attempt in ("1", "2"):
        log = shell("logs", "last:talk", "--attempt", attempt)
        assert log.stdout == "".join(f"attempt {attempt} line {number}\n" for number in range(1, 30_001))
        assert "its folder is kept" in log.stderr
        script = "cat part.txt; echo $COLOUR $MENDFLOW_ATTEMPT $ARCHIVE_TOKEN"
        looked = shell.apart("shell", "last:talk", "-a", attempt, "-c", script, SHELL="/bin/sh")
        assert looked.stdout == f"half\nblue {attempt}\n" and "exit code 3" in looked.stderr
        assert "may be a secret is not written down: ARCHIVE_TOKEN" in " ".join(looked.stderr.split())
        given = shell.apart(
            *("shell", "last:talk", "-a", attempt, "-c", script), SHELL="/bin/sh", ARCHIVE_TOKEN="again"
        )
        assert given.stdout == f"half\nblue {attempt} again\n" and "not written" not in given.stderr
    assert shell.apart("logs", "last:talk", "-f").stdout.endswith("attempt 2 line 30000\n")
    why = " ".join(shell("why", "last:talk").stdout.split())
    assert f"{shell.folder}" in why and "mendflow shell" in why
    assert "no rule took it up" in " ".join(shell("alerts").stdout.split())
    missing = shell("logs", "last:talk", "--attempt", "3")
    assert missing.returncode != 0 and "there are 1, 2" in missing.stderr


def test_a_log_is_printed_as_json_part_by_part_and_never_held_whole(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:  # DU-4
    printed_before: list[str] = []

    async def parts(self: log_reading.LogReading) -> AsyncGenerator[LogView, None]:
        for text in ('one "quoted"\n', "two \x1b[31mred\n", "drei, grün"):
            printed_before.append(capsys.readouterr().out)
            yield LogView(job=JobId("chatty-1/1"), attempt=1, offset=0, text=text, next=0, size=0, over=True)

    monkeypatch.setattr(log_reading.LogReading, "parts", parts)
    job_logs.logs("chatty-1/1", json=True)
    whole = "".join([*printed_before, capsys.readouterr().out])
    assert json.loads(whole) == {"job": "chatty-1/1", "log": 'one "quoted"\ntwo \x1b[31mred\ndrei, grün'}
    assert [bool(each) for each in printed_before] == [False, True, True]


@pytest.mark.parametrize("raw", [False, True])
@pytest.mark.parametrize("is_terminal", [False, True])
def test_what_a_job_printed_tells_a_terminal_nothing_unless_somebody_asks_for_that(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], is_terminal: bool, raw: bool
) -> None:  # SE-1
    printed = ["one\x07 \x1b]0;title\x07\x1b[31mred\x1b[0m\n", "\x1b]52;c;", "cm0gLXJm\x07\x9b2J two\n"]

    async def parts(self: log_reading.LogReading) -> AsyncGenerator[LogView, None]:
        for text in printed:
            yield LogView(job=JobId("chatty-1/1"), attempt=1, offset=0, text=text, next=0, size=0, over=True)

    monkeypatch.setattr(log_reading.LogReading, "parts", parts)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
    job_logs.logs("chatty-1/1", raw=raw)
    told = capsys.readouterr().out
    if raw or not is_terminal:
        assert told == "".join(printed), "byte by byte, as a file or another program wants it"
    else:
        assert told == "one red\ncm0gLXJm2J two\n"


async def test_who_reads_a_log_does_not_ask_again_at_once_for_what_is_not_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # DU-4
    class Silent:
        async def log(self, job: str, *, attempt: int, offset: int) -> LogView:
            return LogView(job=JobId(job), attempt=1, offset=offset, text="", next=offset, size=2, over=False)

    @asynccontextmanager
    async def connect(target: ServerTarget) -> AsyncGenerator[Silent, None]:
        yield Silent()

    async def items_meant(client: Silent, text: str) -> list[ItemView]:
        return [
            ItemView(
                case=CaseId("chatty-1"),
                item=ItemId("talk"),
                name="talk",
                kind="job",
                serial=1,
                state="running",
                job=JobId(text),
            )
        ]

    monkeypatch.setattr(log_reading, "connect", connect)
    monkeypatch.setattr(log_reading, "items_meant", items_meant)
    reading = log_reading.LogReading(ServerTarget("", "", ""), "chatty-1/1", 1)
    assert [part.text async for part in reading.parts()] == [""]


@pytest.mark.full
def test_a_folder_that_is_elsewhere_is_told_with_the_way_there(shell: Shell) -> None:  # DU-4
    shell.write("chatty.yaml", FLOW)
    shell("run", "chatty.yaml", "-q")
    for kept in (shell.folder / ".mendflow" / "work" / "attempts").glob("*.kept"):
        kept.unlink()
    elsewhere = shell.apart("shell", "last:talk")
    assert elsewhere.stdout.startswith("ssh -t ") and "attempts" in elsewhere.stdout


@pytest.mark.full
def test_a_link_in_place_of_a_kept_folder_is_not_followed(shell: Shell) -> None:  # DU-4
    shell.write("chatty.yaml", FLOW)
    shell("run", "chatty.yaml", "-q")
    (shell.folder / "elsewhere").mkdir()
    for kept in (shell.folder / ".mendflow" / "work" / "attempts").glob("*.kept"):
        folder = kept.with_suffix("")
        folder.rename(folder.with_name(f"{folder.name}.moved"))
        folder.symlink_to(shell.folder / "elsewhere")
    refused = shell.apart("shell", "last:talk", "-c", "pwd")
    assert refused.stdout == "" and refused.returncode == 5
    assert "is not the one that was kept: a link is in its place" in " ".join(refused.stderr.split())


@pytest.mark.full
def test_run_bounds_logs_and_kept_folders_by_its_options(shell: Shell) -> None:  # DU-4
    shell.write("chatty.yaml", FLOW)
    bounds = ("--log-size", "100kB", "--keep-failed-max", "1")
    assert shell("run", "chatty.yaml", "-q", *bounds).returncode == 1
    log = shell("logs", "last:talk", "--attempt", "2").stdout
    assert "bytes were left out here]" in log and log.startswith("attempt 2 line 1\n") and len(log) < 110_000
    assert len(list((shell.folder / ".mendflow" / "work" / "attempts").glob("*.kept"))) == 1
    assert shell("rerun", "last", "-q", "--keep-failed", "0s").returncode == 1
    script = shell.apart("shell", "last:talk", "-c", "true")
    assert script.returncode != 0, "nothing of it is kept"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--log-size", "1"), "--log-size '1' is not a size; write one like"),
        (("--log-size", "1 kB"), "allow 65536 or more"),
        (("--keep-failed", "later"), "--keep-failed 'later' is not a time; write one like"),
    ],
)
@pytest.mark.parametrize(
    "command", [("run", "chatty.yaml"), ("serve", "--port", "0"), ("pilot", "--server", "http://x")]
)
def test_a_bound_that_is_none_is_refused_before_anything_starts(
    shell: Shell, command: tuple[str, ...], words: tuple[str, ...], told: str
) -> None:
    shell.write("chatty.yaml", FLOW)
    done = shell(*command, *words)
    assert done.returncode != 0 and told in done.stderr, done.stderr
    assert not (shell.folder / ".mendflow").exists()


def test_a_server_that_starts_no_pilot_says_that_bounds_are_for_pilots(shell: Shell) -> None:
    server = shell.start("serve", "--port", "0", "--log-size", "1GB")
    assert server.stdout is not None
    assert "are for the pilot that --jobs starts, and this server starts none" in server.stdout.readline()


@pytest.mark.full
def test_bytes_that_are_no_text_come_out_as_they_were_printed(shell: Shell) -> None:  # DU-4
    commands = {"short": "printf 'caf\\351\\n'", "long": "for i in $(seq 5000); do printf 'caf\\351 %d\\n' $i; done"}
    jobs = "".join(f"  {name}:\n    run: {json.dumps(command)}\n" for name, command in commands.items())
    shell.write("bytes.yaml", f"jobs:\n{jobs}")
    assert shell("run", "bytes.yaml", "--quiet").returncode == 0
    wanted = {"short": b"caf\xe9\n", "long": b"".join(b"caf\xe9 %d\n" % number for number in range(1, 5001))}
    for name, printed in wanted.items():
        command = [sys.executable, "-m", "mendflow", "logs", f"last:{name}"]
        told = subprocess.run(command, cwd=shell.folder, capture_output=True, timeout=PATIENCE_S, check=True)
        assert told.stdout == printed
    shown = shell("logs", "--json", "last:short")
    assert json.loads(shown.stdout)["log"] == "caf\ufffd\n"


@pytest.mark.full
def test_a_command_that_is_typed_while_a_run_starts_waits_for_it(shell: Shell) -> None:
    shell.write("one.yaml", "jobs:\n  one: {run: echo one}\n  two: {needs: one, run: sleep 2}\n")
    assert shell("run", "one.yaml", "--quiet").returncode == 0
    command = [sys.executable, "-m", "mendflow", "run", "one.yaml", "--new", "--quiet"]
    with subprocess.Popen(command, cwd=shell.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as running:
        while running.poll() is None:
            asked = shell("cases", "--count")
            assert asked.returncode == 0, asked.stderr
            time.sleep(0.05)
        assert running.returncode == 0


def test_a_job_that_was_skipped_is_said_to_have_been_skipped(shell: Shell) -> None:  # DU-4
    shell.write("some.yaml", "name: some\njobs: {a: echo a, b: {run: echo b, if: 1 == 2}}\n")
    shell.ok("run", "some.yaml", "--quiet")
    told = " ".join(shell("logs", "last:b").stderr.split())
    assert "last:b was skipped and never ran; see mendflow why some-" in told and "prints nothing" not in told
