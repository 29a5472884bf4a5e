"""What a job asks for, by what jobs of its name have used."""

from collections.abc import Sequence

import pytest

from mendflow.core.learning.sizes import MEMORY, TIME, FinishedRun, SizeModel, estimates, line_above
from mendflow.core.learning.sizes_replay import ReplayedAsk, ReplayedEnd, SizeReplay

MB = 1_000_000
GB = 1000 * MB


def runs(*used_mb: int, bound: int = 0, inputs: Sequence[int] = ()) -> list[FinishedRun]:
    return [FinishedRun(inputs[at] if inputs else 1, used * MB, bound, 1000.0) for at, used in enumerate(used_mb)]


@pytest.mark.parametrize(
    ("known", "bound", "asked"),
    [
        ([], 0, 0),  # a scout without a bound asks for nothing
        ([], 8 * GB, 6 * GB),  # one with a bound for three quarters of it
        (runs(100), 8 * GB, (110 * MB + MEMORY.headroom) * 5 // 2),  # nor more than a failure would raise it to
        (runs(4000), 8 * GB, 6 * GB),
        (runs(100, 120), 0, 0),
        (runs(100, 7000), 8 * GB, 7000 * MB * 110 // 100 + MEMORY.headroom),  # more than that has been seen
        (runs(100, 7900), 8 * GB, 8 * GB),
    ],
)
def test_scouts_ask_for_most_of_their_bound(known: list[FinishedRun], bound: int, asked: int) -> None:  # LE-2
    answer = SizeModel(MEMORY, known).ask(1, bound)
    assert (answer.amount, answer.basis, answer.runs) == (asked, "scout", len(known))


def test_a_scout_that_failed_stops_the_scouting() -> None:  # LE-2
    model = SizeModel()
    model.note_failure()
    assert model.ask(1, 8 * GB).amount == 8 * GB
    for run in runs(100, 100, 100, bound=8 * GB):
        model.learn(run)
    assert model.ask(1, 8 * GB).amount < GB, "and what is measured counts again"


def test_jobs_that_use_the_same_ask_for_little_more() -> None:  # LE-2
    answer = SizeModel(MEMORY, runs(*[1000] * 10, bound=8 * GB)).ask(1, 8 * GB)
    assert (answer.basis, answer.margin) == ("largest", 0.02)
    assert answer.amount == 1020 * MB + MEMORY.headroom


def test_what_grows_with_the_input_is_asked_for_by_the_input() -> None:  # LE-2
    sizes = [number * GB for number in range(1, 21)]
    known = [FinishedRun(size, size // 10, 0, 1000.0) for size in sizes]
    model = SizeModel(MEMORY, known)
    small, large = model.ask(2 * GB), model.ask(18 * GB)
    assert small.basis == large.basis == "line over input"
    assert 200 * MB < small.amount < 400 * MB and 1800 * MB < large.amount < 2300 * MB


@pytest.mark.parametrize(
    ("known", "last", "bound", "asked"),
    [
        ([], 100 * MB, 0, 250 * MB + 1),
        ([], 6 * GB, 8 * GB, 8 * GB),
        (runs(900), 100 * MB, 0, 990 * MB + MEMORY.headroom),  # such jobs are known to need that
        (runs(900), 100 * MB, 500 * MB, 500 * MB),
        (runs(900), 8 * GB, 8 * GB, 20 * GB + 1),  # the bound itself has failed: it is no bound
    ],
)
def test_a_failed_attempt_is_raised_by_what_is_known(
    known: list[FinishedRun], last: int, bound: int, asked: int
) -> None:  # LE-2
    assert SizeModel(MEMORY, known).ask_more(last, bound).amount == asked


def test_estimates_are_plain() -> None:  # LE-2
    known = runs(10, 20, 30, 400, inputs=[1, 2, 3, 100])
    found = estimates(known, 2)
    assert found["largest"] == 400 * MB
    assert found["similar input"] == 20 * MB or found["similar input"] == 30 * MB
    assert line_above(known, 100) >= 400 * MB


def test_a_line_never_falls_and_is_not_believed_far_beyond_what_was_seen() -> None:  # LE-2
    falling = runs(300, 200, 100, inputs=[1, 2, 3])
    assert line_above(falling, 50) == 300 * MB
    rising = runs(100, 200, 300, inputs=[1, 2, 3])
    assert estimates(rising, 1000)["line over input"] == 600 * MB


def test_time_has_room_for_a_slow_machine() -> None:  # LE-2
    model = SizeModel(TIME, [FinishedRun(1, 100_000) for _ in range(10)])
    assert model.ask(1).amount == 150_000 + TIME.headroom


def test_a_trace_is_sized_in_the_order_in_which_it_is_told() -> None:  # LE-2
    replay = SizeReplay()
    ask = ReplayedAsk(task="a", input_bytes=1, requested_bytes=8 * GB)
    assert replay.ask(ask) == 6 * GB
    for _ in range(3):
        replay.over(ReplayedEnd(task="a", input_bytes=1, requested_bytes=8 * GB, peak_bytes=GB, runtime_ms=1000))
    assert GB < replay.ask(ask) < 2 * GB
    again = ReplayedAsk(task="a", input_bytes=1, requested_bytes=8 * GB, attempt=2, last_bytes=2 * GB)
    assert replay.ask(again) == 5 * GB + 1
    assert replay.ask(ReplayedAsk(task="b", input_bytes=1, requested_bytes=8 * GB)) == 6 * GB, "names are apart"
