"""`took` is how long a job ran, wherever it is shown."""

import msgspec
import pytest

from mendflow.cli import lists
from mendflow.core.model.ids import CaseId, ItemId, JobId, PilotId
from mendflow.core.model.views import AttemptView, ItemView, RunView
from mendflow.pages.attempts import ran_ms
from mendflow.pages.formatting import duration_text
from mendflow.pages.sections import items_table
from tests.cli.conftest import Shell

AT = 1_760_000_000_000


def attempt(
    number: int, granted: int, started: int, ended: int, *, ran: int = 0, end: str = "completed"
) -> AttemptView:
    return AttemptView(
        number=number,
        pilot=PilotId("p-1"),
        granted_at=AT + granted,
        started_at=AT + started if started else 0,
        ended_at=AT + ended if ended else 0,
        end=end,
        fault=None,
        cpu_ms=0,
        peak_bytes=0,
        ran_ms=ran,
    )


def item(*attempts: AttemptView, kind: str = "job", ended: int = 9_000) -> ItemView:
    return ItemView(
        case=CaseId("c-1"),
        item=ItemId("a"),
        name="a",
        kind=kind,
        serial=1,
        state="completed" if ended else "running",
        job=JobId("c-1/1") if kind == "job" else None,
        attempts=list(attempts),
        created_at=AT,
        ended_at=AT + ended if ended else 0,
    )


def test_a_job_that_waited_on_its_pilot_took_as_long_as_it_ran() -> None:  # UI-1
    assert ran_ms(item(attempt(1, 100, 8_700, 8_705, ran=5))) == 5
    assert ran_ms(item(attempt(1, 100, 8_700, 8_705))) == 5, "by its times, if it was too short to be measured"


def test_all_attempts_count_and_those_that_never_ran_do_not() -> None:  # UI-1
    failed = attempt(1, 0, 1_000, 3_000, ran=1_500, end="failed")
    lost = attempt(2, 3_500, 0, 5_000, end="lost")
    returned = attempt(3, 5_000, 0, 5_100, end="returned")
    assert ran_ms(item(failed, lost, returned, attempt(3, 6_000, 7_000, 8_000, ran=1_000))) == 2_500
    assert ran_ms(item(lost)) is None and ran_ms(item()) is None


def test_what_runs_counts_up_to_now_where_that_is_asked_for() -> None:  # UI-1
    running = item(attempt(1, 1_000, 2_000, 0, end=""), ended=0)
    assert ran_ms(running) is None and ran_ms(running, AT + 5_000) == 3_000


def test_what_is_no_job_took_from_its_start_to_its_end() -> None:  # UI-1
    assert ran_ms(item(kind="call")) == 9_000


def test_the_report_shows_how_long_a_job_ran() -> None:  # UI-1
    table = items_table([item(attempt(1, 100, 8_700, 8_705, ran=5))], AT + 10_000)
    assert "<td>5 ms</td>" in table and " s</td>" not in table


def test_the_list_of_items_shows_what_the_pilot_measured(shell: Shell) -> None:  # UI-1
    shell.write("nap.yaml", "name: nap\njobs:\n  a: {for-each: {from: 1, to: 3}, run: sleep 0.2}\n")
    shell.ok("run", "nap.yaml", "-j", "1", "--quiet")
    items = shell.json("items", "last")
    ran = [sum(each["ran_ms"] for each in one["attempts"]) for one in items]  # a pilot that was lost has it run again
    assert all(each >= 190 for each in ran), ran
    head, *rows = shell.ok("items", "last").splitlines()
    shown = {row[head.index("took") : head.index("remark")].strip() for row in rows}
    assert shown == {duration_text(each) for each in ran}


def test_each_run_of_a_restarted_job_has_its_own_time(capsys: pytest.CaptureFixture[str]) -> None:  # UI-1
    run = RunView(
        serial=1,
        state="failed",
        job=JobId("c-1/1"),
        attempts=1,
        created_at=AT,
        ended_at=AT + 9_000,
        fault=None,
        ran_ms=7,
    )
    restarted = msgspec.structs.replace(item(attempt(1, 0, 8_700, 8_705, ran=5)), earlier_runs=[run])
    lists._print_items([restarted], runs=True)
    assert [line.split()[-3:-1] for line in capsys.readouterr().out.splitlines()[1:2]] == [["7", "ms"]]
