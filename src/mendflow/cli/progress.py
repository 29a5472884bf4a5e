"""Progress of a case: one line per job name, updated in place on a terminal, printed now and then elsewhere.

Progress goes to standard error; standard output has results only. It uses the case's counts, never single events, so a
case with very many items costs no more to watch than a small one."""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec
from rich.console import Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from mendflow.cli.printing import STYLES, console, say
from mendflow.cli.wait_explanations import WaitExplainer
from mendflow.client import Client
from mendflow.core.model.errors import StoreUnavailable, Unreachable
from mendflow.core.model.views import CASE_END_STATES, CaseView, NameCount
from mendflow.pages.formatting import duration_text, one_line
from mendflow.pages.item_counts import STATES, counts_text

HEADS = ["done", "mended", "running", "waiting", "failed"]
MORE_HEADS = ("cached", "cancelled")
HAPPENED = ("done", "running", "failed", "cancelled", "mended", "cached", "skipped")
PLAIN_EVERY_S = 2.0
STILL_AFTER_S = 10.0
"""After so long without news, waiting jobs are printed too: in a log, silence looks like a hang."""

SERIES_MIN = 3
STATUS_VERBS = {"completed": "has", "failed": "has", "cancelled": "was"}
LOOK_EVERY_S = (0.04, 0.4)
PATIENCE_S = 60.0


class ProgressDisplay(Protocol):
    def show(self, case: CaseView) -> None: ...
    def close(self) -> None: ...


class NoProgress:
    def show(self, case: CaseView) -> None:
        pass

    def close(self) -> None:
        pass


class PlainProgress:
    """A line for each name whose counts have changed, at most every few seconds, and once at the end."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, wall_clock: Callable[[], float] = time.time
    ) -> None:
        self._clock = clock
        self._wall_clock = wall_clock
        self._began = clock()
        self._head_start_ms: float | None = None  # how long the case had been there when it was first shown
        self._printed_at = float("-inf")
        self._last: dict[str, NameCount] = {}
        self._status = "running"

    def show(self, case: CaseView) -> None:
        now = self._clock()
        if case.status not in CASE_END_STATES and now - self._printed_at < PLAIN_EVERY_S:
            return
        stamp = f"[{duration_text(self._since_start_ms(case, now)):>9}]"
        still = now - max(self._printed_at, self._began) >= STILL_AFTER_S
        for count in with_series(case.counts):
            if self._last.get(count.name) != count and (still or _has_news(count)):
                self._last[count.name] = count
                self._printed_at = now
                say(f"{stamp} {one_line(count.name, 40)}: {line_of(count)}", err=True)
        if case.status != self._status:
            self._status = case.status
            say(f"{stamp} the case {STATUS_VERBS.get(case.status, 'is')} {case.status}", err=True)

    def _since_start_ms(self, case: CaseView, now: float) -> float:
        """Since the case began, as its summary counts it: when it has ended, both say the same."""
        if case.ended_at:
            return max(case.ended_at - case.started_at, 0)
        if self._head_start_ms is None:
            here_ms = (now - self._began) * 1000
            self._head_start_ms = max(self._wall_clock() * 1000 - case.started_at - here_ms, 0)
        return self._head_start_ms + (now - self._began) * 1000

    def close(self) -> None:
        pass


class LiveProgress:
    """A table that is updated in place."""

    def __init__(self) -> None:
        self._console = console(err=True)
        self._live = Live(console=self._console, refresh_per_second=8, transient=False)
        self._live.start()

    def show(self, case: CaseView) -> None:
        self._live.update(live_table(case, rows_max=max(self._console.height - 5, 3), now_ms=int(time.time() * 1000)))

    def close(self) -> None:
        self._live.stop()


def progress(*, quiet: bool) -> ProgressDisplay:
    if quiet:
        return NoProgress()
    return LiveProgress() if console(err=True).is_terminal else PlainProgress()


def line_of(count: NameCount) -> str:
    """3 done (1 mended), 2 running, 95 waiting."""
    return counts_text([count], STATES) or "not begun"


def _has_news(count: NameCount) -> bool:
    """Whether it has done more than wait in the queue; a waiting user task is news."""
    return count.kind == "user-task" or any(getattr(count, word) for word in HAPPENED)


def live_table(case: CaseView, *, rows_max: int, now_ms: int) -> Group:
    """Running and failed names come first if there is no room for all; the rest is one line, and a total is below."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("", no_wrap=True, max_width=24, overflow="ellipsis")
    table.add_column("", width=14)
    counts = with_series(case.counts)
    heads = HEADS + [word for word in MORE_HEADS if any(getattr(count, word) for count in counts)]
    for head in heads:
        table.add_column(head, justify="right", no_wrap=True)
    shown = sorted(range(len(counts)), key=lambda place: _rank(counts[place]))
    if len(shown) > rows_max:
        shown = shown[: max(rows_max - 2, 1)]
    for place in sorted(shown):
        table.add_row(*_cells(counts[place], heads))
    folded = [count for place, count in enumerate(counts) if place not in set(shown)]
    if folded:
        table.add_row(*_cells(_sum(folded, f"{len(folded):,} more names"), heads), style="dim")
    if len(counts) > 1:
        table.add_row(*_cells(_sum(counts, "total"), heads))
    parts: list[Table | Text] = [_head(case, now_ms), table]
    if any(count.kind == "user-task" and count.waiting + count.running for count in case.counts):
        parts.append(Text("a user task waits for somebody; see mendflow worklist", style="yellow"))
    return Group(*parts)


def with_series(counts: Sequence[NameCount]) -> list[NameCount]:
    """The counts, with those of `count`, `count-2`, `count-3`... as one: a loop of Python calls jobs so, and is watched
    as a whole."""
    by_name = {(each.name, each.kind): each for each in counts}
    joined: list[NameCount] = []
    done: set[tuple[str, str]] = set()
    for each in counts:
        if (each.name, each.kind) in done:
            continue
        series = [each]
        while (following := by_name.get((f"{each.name}-{len(series) + 1}", each.kind))) is not None:
            series.append(following)
        if len(series) < SERIES_MIN:
            joined.append(each)
            continue
        done |= {(one.name, one.kind) for one in series}
        joined.append(msgspec.structs.replace(_sum(series, f"{each.name} to {series[-1].name}"), kind=each.kind))
    return joined


def _rank(count: NameCount) -> int:
    """Failed, then running, then waiting, then ended."""
    return 0 if count.failed else 1 if count.running else 2 if count.waiting else 3


def _sum(counts: Sequence[NameCount], name: str) -> NameCount:
    words = ("done", "running", "waiting", "failed", "cancelled", "mended", "cached", "skipped")
    return NameCount(name=name, kind="", **{word: sum(getattr(count, word) for count in counts) for word in words})


def _head(case: CaseView, now_ms: int) -> Text:
    took = duration_text(max((case.ended_at or now_ms) - case.started_at, 0))
    return Text.assemble((str(case.id), "bold"), "  ", (case.status, STYLES.get(case.status, "")), "  ", (took, "dim"))


def _cells(count: NameCount, heads: list[str]) -> list[Text | ProgressBar]:
    done = count.done + count.cached + count.skipped
    total = done + count.running + count.waiting + count.failed + count.cancelled
    numbers = [(head, getattr(count, head)) for head in heads]
    bar = ProgressBar(total=max(total, 1), completed=done, width=14)
    cells = [
        Text(f"{number:,}" if number else "·", style=STYLES.get(w, "") if number else "dim") for w, number in numbers
    ]
    return [Text(one_line(count.name, 40)), bar, *cells]


def is_held(case: CaseView) -> bool:
    """Whether all that is left to do waits for a person, because something failed that no rule took up."""
    return bool(case.held) and not any(count.running or count.waiting for count in case.counts)


async def follow(
    client: Client,
    case: str,
    shown: ProgressDisplay,
    stop: asyncio.Event | None = None,
    *,
    patience_s: float = PATIENCE_S,
    waits: WaitExplainer | None = None,
) -> CaseView | None:
    """Show the case until it has ended, or waits for a person to take up what failed and for nothing else; None if
    `stop` was set before. `waits` tells why jobs wait. A server that is away for a short while is
    waited for."""
    wait_s, patience_ends = LOOK_EVERY_S[0], time.monotonic() + patience_s
    while True:
        try:
            view = await client.case(case)
            patience_ends = time.monotonic() + patience_s
            shown.show(view)
            if view.status in CASE_END_STATES or is_held(view):
                return view
            if waits is not None:
                await waits.look(view)
        except StoreUnavailable as error:  # the server is there, and goes on by itself when its store is
            patience_ends = time.monotonic() + patience_s
            if waits is not None:
                waits.store_away(error.message)
        except Unreachable:
            if time.monotonic() > patience_ends:
                raise
        if await _stopped(stop, wait_s):
            return None
        wait_s = min(wait_s * 1.2, LOOK_EVERY_S[1])


async def _stopped(stop: asyncio.Event | None, wait_s: float) -> bool:
    """Wait a little; True if `stop` was set meanwhile."""
    if stop is None:
        await asyncio.sleep(wait_s)
        return False
    try:
        async with asyncio.timeout(wait_s):
            await stop.wait()
        return True
    except TimeoutError:
        return False
