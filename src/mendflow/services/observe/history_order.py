"""The order of a history: all entries by time, and at the same instant causes before their consequences."""

from collections.abc import Iterable
from typing import Final

from mendflow.core.model.repair_views import HistoryEntry

_ATTEMPT_ENDED, _JOURNAL, _DECIDED, _STEPS, _REPAIRED, _BEGAN = range(6)
_STEP_OF: Final = {
    "force-failed": "force-fail",
    "force-completed": "force-complete",
    "removed": "remove",
    "restarted": "restart",
    "suspended": "suspend",
    "continued": "continue",
    "written": "write",
}
"""The primitive by which an exlet gives a command to the case that it mends."""


def merge_entries(
    journal: Iterable[HistoryEntry], attempts_and_decisions: Iterable[HistoryEntry], steps: Iterable[HistoryEntry]
) -> list[HistoryEntry]:
    """All entries in the order of time. `steps` are those of exlets."""
    by_steps = list(steps)
    ranked = _ranked_journal(journal, by_steps)
    ranked += [(entry.at, _rank(entry), 0, entry) for entry in attempts_and_decisions]
    ranked += [(entry.at, _STEPS, 2 * place, entry) for place, entry in enumerate(by_steps)]
    return [entry for *_, entry in sorted(ranked, key=lambda each: each[:3])]


def _ranked_journal(
    journal: Iterable[HistoryEntry], steps: list[HistoryEntry]
) -> list[tuple[int, int, int, HistoryEntry]]:
    """What an exlet ordered, and what followed from it at once, comes after the step that ordered it."""
    begun = {(step.at, str(step.case), step.name): place for place, step in enumerate(steps) if step.what == "mending"}
    found: list[tuple[int, int, int, HistoryEntry]] = []
    instant, after = -1, -1
    for entry in journal:
        instant, after = (instant, after) if entry.at == instant else (entry.at, -1)
        step = begun.get((entry.at, entry.by, _STEP_OF.get(entry.what, "")), -1) if entry.source == "service" else -1
        after = max(after, step)
        found.append((entry.at, _STEPS, 2 * after + 1, entry) if after >= 0 else (entry.at, _JOURNAL, 0, entry))
    return found


def _rank(entry: HistoryEntry) -> int:
    """The end of an attempt comes before what the engine made of it, its start after the order."""
    if entry.source == "service" or entry.what == "raised":
        return _REPAIRED if entry.what in ("repaired", "repairing", "told") else _DECIDED
    return _BEGAN if entry.what == "began" else _ATTEMPT_ENDED
