"""The report of a case as one self-contained page.

Everything that comes from a flow or a job is escaped where it is inserted. In addition, the page's policy (`document`)
allows exactly one script and one style."""

import re
from collections import defaultdict
from collections.abc import Sequence
from importlib import resources as package_files
from typing import NamedTuple

from mendflow.core.model.flow import Flow
from mendflow.core.model.ids import Instant
from mendflow.core.model.repair_views import DecisionView
from mendflow.core.model.views import AttemptView, CaseView, ItemView
from mendflow.pages.attempts import started_attempts
from mendflow.pages.distributions import distributions
from mendflow.pages.document import document, figure
from mendflow.pages.formatting import duration_text, escape_html, one_line, size_text, time_text
from mendflow.pages.graph import graph
from mendflow.pages.item_counts import called_by_flow
from mendflow.pages.related_cases import other_cases
from mendflow.pages.repairs import Steps, repairs
from mendflow.pages.sections import failures, items_table, resources, values_table
from mendflow.pages.staging import staging_table, staging_totals
from mendflow.pages.timeline import timeline

_COMMAND = re.compile(r"`([^`]+)`")
SCRIPT = package_files.files("mendflow.pages").joinpath("report.js").read_text(encoding="utf-8")


def render(
    case: CaseView,
    flow: Flow,
    items: list[ItemView],
    *,
    called: Sequence[CaseView] = (),
    called_items: Sequence[ItemView] = (),
    decisions: Sequence[DecisionView] = (),
    steps: Steps | None = None,
    undone: Sequence[str] = (),
    present: Sequence[str] = (),
    now: Instant = 0,
    version: str = "",
) -> str:
    """The whole page. `called` are cases that belong to this one: called ones, and exlets that repaired it. `undone`
    are sentences, and so is `present`: what a case that is not over does, or waits for. `now` is the end of what has
    not ended; by default, the latest time in the views."""
    now = now or _latest(case, items)
    theirs: dict[str, list[ItemView]] = defaultdict(list)
    for item in called_items:
        theirs[str(item.case)].append(item)
    sections = [
        ("Flow", "flow", graph(flow, case.counts)),
        ("Timeline", "timeline", timeline(case, items, now)),
        ("Failures", "failures", failures(case.fault, items)),
        ("Resources", "resources", resources(flow, items, now)),
        *([("Distributions", "distributions", drawn)] if (drawn := distributions(items)) else []),
        ("Outputs", "outputs", values_table(case.outputs, "The flow gives no outputs.")),
        ("Inputs", "inputs", values_table(case.inputs, "The case was given no inputs.")),
        ("Items", "items-section", items_table(items, now)),
    ]
    if brought_here := staging_table(items):
        sections.insert(4, ("Data", "data", brought_here))
    if decisions:
        sections.insert(3, ("Repairs", "repairs", repairs(decisions, items, steps or {})))
    if called:
        any_called, any_exlet = (any(getattr(other, word) for other in called) for word in ("parent", "mends"))
        title = "Called cases and exlets" if any_called and any_exlet else "Exlets" if any_exlet else "Called cases"
        place = 1 if any_called else 4
        sections.insert(place, (title, "called", other_cases(called, theirs, steps or {})))
    body = "".join(f'<section id="{key}"><h2>{title}</h2>{content}</section>' for title, key, content in sections)
    links = "".join(f'<a href="#{key}">{title}</a>' for title, key, _ in sections)
    header = _header(case, flow, _CaseTree(case, items, called, called_items), (*undone, *present), now)
    footer = (
        f'<footer class="quiet">Made by mendflow {escape_html(version)} for case {escape_html(str(case.id))}.</footer>'
    )
    whole = f"{header}<nav>{links}</nav><main>{body}</main>{footer}"
    return document(f"{flow.name}: {case.status} ({case.id})", whole, script=SCRIPT)


def _latest(case: CaseView, items: list[ItemView]) -> Instant:
    ends = (max(attempt.granted_at, attempt.ended_at) for item in items for attempt in item.attempts)
    return max(case.started_at, case.ended_at, max(ends, default=0), max((item.ended_at for item in items), default=0))


class _CaseTree(NamedTuple):
    """A case with those that belong to it. Of very many, the items of the last ones are missing."""

    case: CaseView
    items: Sequence[ItemView]
    called: Sequence[CaseView]
    called_items: Sequence[ItemView]

    def total(self, word: str) -> int:
        """Totals of the work itself: a call counts by what the called case did, unless it did nothing."""
        own = called_by_flow(self.case, self.called)
        counts = [count for case in (self.case, *own) for count in case.counts]
        work = sum(getattr(count, word) for count in counts if count.kind != "call")
        return work or (sum(getattr(count, word) for count in counts) if word in ("failed", "cancelled") else 0)

    def attempts(self) -> list[AttemptView]:
        return [attempt for item in (*self.items, *self.called_items) for attempt in started_attempts(item)]

    def cut(self) -> bool:
        known = {item.case for item in self.called_items}
        return any(case.counts and case.id not in known for case in self.called)


def _header(case: CaseView, flow: Flow, whole: _CaseTree, told: Sequence[str], now: Instant) -> str:
    described = f"<p>{escape_html(one_line(flow.description, 400))}</p>" if flow.description else ""
    described += "".join(f"<p>{_with_commands(one_line(sentence, 400))}</p>" for sentence in told)
    status = "held" if _is_held(case) else case.status
    rerun = f" · again from {escape_html(str(case.rerun_of))}" if case.rerun_of else ""
    figures = "".join(figure(value, word, css) for value, word, css in _figures(whole, now))
    ended = f" · ended {time_text(case.ended_at)}" if case.ended_at else f" · as of {time_text(now)}"
    return (
        f'<header><div class="top"><h1>{escape_html(one_line(str(flow.name), 80))}</h1>'
        f'<span class="pill big {escape_html(status)}">{escape_html(status)}</span></div>{described}'
        f'<p class="quiet">case {escape_html(str(case.id))}{rerun} · started {time_text(case.started_at)}{ended}</p>'
        f'<div class="figures">{figures}</div></header>'
    )


def _is_held(case: CaseView) -> bool:
    """Whether all that is left to do waits for a person."""
    return bool(case.held) and not case.ended_at and not any(count.running or count.waiting for count in case.counts)


def _with_commands(sentence: str) -> str:
    """The sentence, with what is in backticks as code."""
    return _COMMAND.sub(r"<code>\1</code>", escape_html(sentence))


def _figures(whole: _CaseTree, now: Instant) -> list[tuple[str, str, str]]:
    """The headline figures of the case and all that its flow called."""
    case, attempts, more = whole.case, whole.attempts(), "+" if whole.cut() else ""
    total = {word: whole.total(word) for word in ("done", "failed", "cancelled", "mended", "cached")}
    figures = [
        (duration_text((case.ended_at or now) - case.started_at), "duration", ""),
        (f"{total['done']:,}", "done", "good"),
        (f"{total['mended']:,}", "of them mended", "mended" if total["mended"] else ""),
        (f"{total['failed']:,}", "failed", "bad" if total["failed"] else ""),
    ]
    figures += [(f"{total['cancelled']:,}", "cancelled", "")] if total["cancelled"] else []
    figures += [(f"{total['cached']:,}", "cached", "")] if total["cached"] else []
    peak = max((attempt.peak_bytes for attempt in attempts), default=0)
    return [
        *figures,
        (f"{len(attempts):,}{more}", "attempts", ""),
        (duration_text(sum(attempt.cpu_ms for attempt in attempts)) + more, "CPU time", ""),
        (size_text(peak) if peak else "-", "peak memory", ""),
        *(
            [(f"{staged.share:.0%}", "of input data from pilots' caches", "")]
            if (staged := staging_totals(attempts)).files
            else []
        ),
    ]
