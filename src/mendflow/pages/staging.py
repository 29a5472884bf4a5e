"""Where the inputs of jobs came from: caches of pilots, or elsewhere.

Every attempt counts, whatever its result: its inputs were fetched."""

from collections import defaultdict
from collections.abc import Iterable

import msgspec

from mendflow.core.model.views import AttemptView, ItemView
from mendflow.pages.attempts import started_attempts
from mendflow.pages.formatting import count_text, duration_text, escape_html, one_line, size_text

ROWS_MAX = 300


class StagingTotals(msgspec.Struct):
    """Totals of the inputs of some attempts."""

    attempts: int = 0
    cached_files: int = 0
    cached_bytes: int = 0
    shared_files: int = 0
    fetched_files: int = 0
    fetched_bytes: int = 0
    stage_in_ms: int = 0
    stage_out_ms: int = 0

    @property
    def files(self) -> int:
        return self.cached_files + self.fetched_files

    @property
    def share(self) -> float:
        """Of the bytes; of the files if all are empty."""
        whole = self.cached_bytes + self.fetched_bytes
        return self.cached_bytes / whole if whole else self.cached_files / max(1, self.files)


def staging_totals(attempts: Iterable[AttemptView]) -> StagingTotals:
    totals = StagingTotals()
    for attempt in attempts:
        totals.attempts += 1
        for word in StagingTotals.__struct_fields__[1:]:
            setattr(totals, word, getattr(totals, word) + getattr(attempt, word))
    return totals


def staging_table(items: Iterable[ItemView]) -> str:
    """By job name, and in total. Empty if no job had inputs."""
    by_name: dict[str, list[AttemptView]] = defaultdict(list)
    for item in items:
        by_name[item.name].extend(started_attempts(item))
    totals = {name: each for name, attempts in by_name.items() if (each := staging_totals(attempts)).files}
    if not totals:
        return ""
    rows = [_row(one_line(name, 60), each) for name, each in list(totals.items())[:ROWS_MAX]]
    if len(totals) > 1:
        rows.append(_row("all", staging_totals(attempt for attempts in by_name.values() for attempt in attempts)))
    heads = (
        "job",
        "attempts",
        "from caches",
        "of these, other pilots'",
        "from elsewhere",
        "share from caches",
        "bringing",
        "keeping",
    )
    head = "".join(f"<th>{word}</th>" for word in heads)
    left = (
        f'<p class="quiet">and {count_text(len(totals) - ROWS_MAX, "more job")}.</p>' if len(totals) > ROWS_MAX else ""
    )
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>{left}'
    )


def _row(name: str, totals: StagingTotals) -> str:
    cells = [
        f"{totals.attempts:,}",
        _amount(totals.cached_files, totals.cached_bytes),
        f"{totals.shared_files:,}" if totals.shared_files else "-",
        _amount(totals.fetched_files, totals.fetched_bytes),
        f'<meter min="0" max="1" value="{totals.share:.3f}"></meter> {totals.share:.0%}',
        duration_text(totals.stage_in_ms),
        duration_text(totals.stage_out_ms) if totals.stage_out_ms else "-",
    ]
    return f"<tr><th>{escape_html(name)}</th>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _amount(files: int, size: int) -> str:
    return f"{count_text(files, 'file')}, {size_text(size)}" if files else "-"
