"""Other cases that belong to this one: called cases, and exlets that repaired it. All are on the same page, so that
links work wherever the page is."""

import hashlib
from collections.abc import Mapping, Sequence

from mendflow.core.model.repair_views import HistoryEntry
from mendflow.core.model.views import CaseView, ItemView
from mendflow.pages.attempts import ran_ms, started_attempts
from mendflow.pages.formatting import count_text, duration_text, escape_html, one_line

CASES_MAX = 300
ITEMS_MAX = 200
CELL_CHARS_MAX = 160
_COLOURS = {"mended": "mended", "failed": "failed", "completed": "completed"}


def anchor(case: str) -> str:
    """The anchor of a case on the page."""
    return "case-" + hashlib.sha256(case.encode()).hexdigest()[:12]


def other_cases(
    cases: Sequence[CaseView], items: Mapping[str, Sequence[ItemView]], steps: Mapping[str, Sequence[HistoryEntry]]
) -> str:
    """A table of them, and each one's items, or an exlet's steps, below."""
    shown = cases[:CASES_MAX]
    rows = "".join(_row(case) for case in shown)
    more = f"{count_text(len(cases) - CASES_MAX, 'more case')}; mendflow cases has them all. "
    note = f"{more if len(cases) > CASES_MAX else ''}mendflow report CASE writes a case's own report."
    heads = ("case", "flow", "for", "status", "took", "done", "of them mended", "failed", "cancelled", "cached", "why")
    head = "".join(f"<th>{word}</th>" for word in heads)
    details = "".join(_detail(case, items.get(str(case.id), ()), steps.get(str(case.id), ())) for case in shown)
    return (
        f'<p class="quiet">{note}</p><div class="scroll tall"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>{details}"
    )


def _row(case: CaseView) -> str:
    words = ("done", "mended", "failed", "cancelled", "cached")
    numbers = [sum(getattr(count, word) for count in case.counts) for word in words]
    cells = [
        f'<th><a href="#{anchor(str(case.id))}">{_text(str(case.id))}</a></th>',
        f"<td>{_text(case.flow, 60)}</td>",
        f"<td>{_text(purpose(case))}</td>",
        f'<td><span class="pill {escape_html(case.status)}">{escape_html(case.status)}</span></td>',
        f"<td>{duration_text(max(case.ended_at - case.started_at, 0)) if case.ended_at else '-'}</td>",
        *(f"<td>{number or '-'}</td>" for number in numbers),
        f'<td class="remark">{_text(case.fault.message) if case.fault else ""}</td>',
    ]
    return f"<tr>{''.join(cells)}</tr>"


def purpose(case: CaseView) -> str:
    """Why a case exists, if it serves another."""
    if case.mends:
        return f"mends {case.mends}" + (f":{case.mends_item}" if case.mends_item else "")
    return f"called by {case.parent}" if case.parent else ""


def _detail(case: CaseView, items: Sequence[ItemView], steps: Sequence[HistoryEntry]) -> str:
    rows = "".join(_item(item) for item in sorted(items, key=lambda item: (item.created_at, item.serial))[:ITEMS_MAX])
    more = f'<p class="quiet">and {len(items) - ITEMS_MAX:,} more.</p>' if len(items) > ITEMS_MAX else ""
    head = "".join(f"<th>{word}</th>" for word in ("item", "kind", "state", "attempts", "took", "remark"))
    table = f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>{more}'
    shown = (table if rows else "") + step_table(steps)
    shown = shown or '<p class="quiet">What it did is not shown here.</p>'
    return (
        f'<details class="other" id="{anchor(str(case.id))}"><summary><b>{_text(str(case.id))}</b> '
        f'{_text(case.flow, 60)} <span class="quiet">{_text(purpose(case))}</span> '
        f'<span class="pill {escape_html(case.status)}">{escape_html(case.status)}</span></summary>{shown}</details>'
    )


def step_table(steps: Sequence[HistoryEntry]) -> str:
    """The orders of an exlet and their results, by time."""
    rows = "".join(
        f'<li>{_text(entry.name, 80)} <span class="pill {_COLOURS.get(entry.what, "")}">'
        f'{escape_html(entry.what)}</span> <span class="quiet">{_text(entry.message, 240)}</span></li>'
        for entry in [entry for entry in steps if entry.item is not None][:ITEMS_MAX]
    )
    return f'<ol class="steps">{rows}</ol>' if rows else ""


def _item(item: ItemView) -> str:
    took = "-" if (spent := ran_ms(item)) is None else duration_text(spent)
    remark = item.fault.message if item.fault else item.reason or item.command
    return (
        f"<tr><th>{_text(item.shown, 100)}</th><td>{_text(item.kind, 20)}</td>"
        f'<td><span class="pill {escape_html(item.state)}">{escape_html(item.state)}</span></td>'
        f'<td>{len(started_attempts(item)) or "-"}</td><td>{took}</td><td class="remark">{_text(remark)}</td></tr>'
    )


def _text(text: str, limit: int = CELL_CHARS_MAX) -> str:
    return escape_html(one_line(text, limit))
