"""How many items ended how.

The items of a case, and of the cases that its flow called, are counted, each once, as what it ended as. Those that were
mended are among those that are done, and stand in brackets behind them. What an exlet ran, or undid, is not counted."""

from collections.abc import Iterable, Sequence
from typing import Final

from mendflow.core.model.views import CaseView, NameCount

STATES: Final = ("done", "running", "waiting", "failed", "cancelled", "cached", "skipped")
ENDS: Final = ("done", "failed", "cancelled", "cached", "skipped")


def counts_text(counts: Iterable[NameCount], words: Iterable[str] = ENDS, *, shows_none_done: bool = False) -> str:
    """5 done (1 mended), 2 failed. `shows_none_done`: say also that none is done."""
    counts = list(counts)
    mended = sum(count.mended for count in counts)
    parts = []
    for word in words:
        number = sum(getattr(count, word) for count in counts)
        if number or (word == "done" and shows_none_done):
            parts.append(f"{number:,} {word}" + (f" ({mended:,} mended)" if word == "done" and mended else ""))
    return ", ".join(parts)


def called_by_flow(case: CaseView, others: Sequence[CaseView]) -> list[CaseView]:
    """Those among other cases, a caller before what it called, that the flow of this one called, however deep."""
    own = {case.id}
    found = []
    for each in others:
        if each.parent in own:
            own.add(each.id)
            found.append(each)
    return found
