"""Progress of a case in a notebook: a small table that updates itself in the output of its cell."""

import html
import importlib
import sys
from typing import Any

from mendflow.cli.progress import NoProgress, ProgressDisplay, line_of, progress, with_series
from mendflow.core.model.views import CaseView
from mendflow.pages.formatting import one_line

COLOURS = {"completed": "#1a7f37", "failed": "#cf222e", "cancelled": "#cf222e", "running": "#0969da"}


def notebook_shell() -> Any:
    """IPython's shell, if this is a notebook; None in a terminal. Nothing is imported to find out."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell if shell is not None and hasattr(shell, "kernel") else None


def display_for(*, quiet: bool) -> ProgressDisplay:
    if quiet:
        return NoProgress()
    return NotebookProgress() if notebook_shell() is not None else progress(quiet=False)


class NotebookProgress:
    def __init__(self) -> None:
        self._display = importlib.import_module("IPython.display").display
        self._handle: Any = None
        self._last: dict[str, str] = {}

    def show(self, case: CaseView) -> None:
        shown = {"text/plain": plain_lines(case), "text/html": table(case)}
        if shown == self._last:
            return
        self._last = shown
        if self._handle is None:
            self._handle = self._display(shown, raw=True, display_id=True)
        else:
            self._handle.update(shown, raw=True)

    def close(self) -> None:
        """What was shown last stays."""


def plain_lines(case: CaseView) -> str:
    lines = [f"{case.id}  {case.status}"]
    return "\n".join(lines + [f"  {one_line(each.name, 40)}: {line_of(each)}" for each in with_series(case.counts)])


def table(case: CaseView) -> str:
    colour = COLOURS.get(case.status, "inherit")
    rows = "".join(
        f'<tr><td style="text-align:left">{html.escape(one_line(each.name, 40))}</td>'
        f'<td style="text-align:left">{html.escape(line_of(each))}</td></tr>'
        for each in with_series(case.counts)
    )
    head = f'<b>{html.escape(str(case.id))}</b> <span style="color:{colour}">{html.escape(case.status)}</span>'
    return f"<div>{head}<table>{rows}</table></div>"
