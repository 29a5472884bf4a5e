"""The repairs of a case: what failed, which rule concluded what from which values, what the exlet did, and its cost.

The trail is the service's own, so the page answers "why this repair?" by itself."""

import json
from collections.abc import Mapping, Sequence

import msgspec

from mendflow.core.model.ids import Instant
from mendflow.core.model.repair import ExceptionType
from mendflow.core.model.repair_views import DecisionView, HistoryEntry, TrailStep
from mendflow.core.model.rules import rule_text
from mendflow.core.model.values import Value
from mendflow.core.model.views import ItemView
from mendflow.core.recovery.undo_sentences import undone_sentences
from mendflow.pages.attempts import started_attempts
from mendflow.pages.formatting import count_text, duration_text, escape_html, one_line, short_time_text
from mendflow.pages.related_cases import anchor, step_table

REPAIRS_MAX = 300
VALUE_CHARS_MAX = 120
GOOD = ("recovered", "completed", "restarted", "done")


class Cost(msgspec.Struct, frozen=True):
    """The cost of a repair: additional attempts, and its duration."""

    attempts: int = 0
    took_ms: int = 0


Steps = Mapping[str, Sequence[HistoryEntry]]
"""What exlets did, by the exlet's case."""


def repairs(decisions: Sequence[DecisionView], items: Sequence[ItemView], steps: Steps) -> str:
    shown = sorted(decisions, key=lambda decision: decision.at)[:REPAIRS_MAX]
    if not shown:
        return '<p class="quiet">Nothing had to be repaired.</p>'
    spent = costs(decisions, items)
    parts = [_summary(decisions, spent)]
    parts += [
        _repair(decision, spent[decision.id], steps.get(str(decision.exlet_case), ()), opened=place == 0)
        for place, decision in enumerate(shown)
    ]
    if len(decisions) > len(shown):
        parts.append(f'<p class="quiet">and {len(decisions) - len(shown):,} more; mendflow history has them all.</p>')
    return "".join(parts)


def costs(decisions: Sequence[DecisionView], items: Sequence[ItemView]) -> dict[str, Cost]:
    """Attempts of the item that started between a decision and the next one about it were caused by it."""
    by_item = {item.item: item for item in items}
    later: dict[str, Instant] = {}
    found: dict[str, Cost] = {}
    for decision in sorted(decisions, key=lambda each: -each.at):
        end = later.get(str(decision.item), 0)
        item = by_item.get(decision.item) if decision.item else None
        made = [each.granted_at for each in started_attempts(item)] if item else []
        more = sum(1 for at in made if at >= decision.at and (not end or at < end)) if decision.exlet else 0
        found[decision.id] = Cost(more, max(decision.ended_at - decision.at, 0) if decision.ended_at else 0)
        later[str(decision.item)] = decision.at
    return found


def _summary(decisions: Sequence[DecisionView], spent: dict[str, Cost]) -> str:
    repaired = sum(decision.result in GOOD for decision in decisions)
    ignored = sum(not decision.exlet for decision in decisions)
    attempts, took = sum(cost.attempts for cost in spent.values()), sum(cost.took_ms for cost in spent.values())
    what = "failure" if all(each.type is ExceptionType.ABORT for each in decisions) else "exception"
    parts = [count_text(len(decisions), what), f"{repaired:,} repaired"]
    parts += [f"{ignored:,} that no rule fits"] if ignored else []
    parts += [count_text(attempts, "more attempt")] if attempts else []
    parts += [f"{duration_text(took)} in repairs"] if took else []
    return f'<p class="quiet">{escape_html(" · ".join(parts))}</p>'


def _repair(decision: DecisionView, cost: Cost, steps: Sequence[HistoryEntry], *, opened: bool) -> str:
    word = "no rule fits" if decision.state == "ignored" else decision.result or decision.state
    css = "mended" if word in GOOD else "running" if decision.state in ("running", "waiting") else "failed"
    what = decision.fault.message if decision.fault else decision.type.value
    done = f"→ <b>{_text(decision.exlet, 80)}</b>" if decision.exlet else ""
    return (
        f'<details class="failure repair{" made-good" if word in GOOD else ""}"{" open" if opened else ""}>'
        f"<summary><b>{_text(decision.shown or str(decision.case), 100)}</b> {_text(what, 240)} {done} "
        f'<span class="pill {css}">{escape_html(word)}</span></summary>'
        f"{_facts(decision, cost)}{_reason(decision)}{_trail(decision)}{_steps(decision, steps)}</details>"
    )


def _facts(decision: DecisionView, cost: Cost) -> str:
    facts = [short_time_text(decision.at)[11:]]
    facts += [decision.type.value] if decision.type is not ExceptionType.ABORT else []
    facts += [f"a fault of the kind {decision.fault.category.value}"] if decision.fault else []
    if decision.rule is not None:
        facts.append(f"{rule_text(decision.rules, decision.rule)}, version {decision.version}")
    facts += [f"ordered by {decision.ordered_by}"] if decision.ordered_by else []
    facts += [count_text(cost.attempts, "more attempt")] if cost.attempts else []
    facts += [f"took {duration_text(cost.took_ms)}"] if cost.took_ms else []
    facts += [f"replaced by {decision.replaced_by}"] if decision.replaced_by else []
    told = [*undone_sentences([decision]), *([decision.note] if decision.note else [])]
    note = "".join(f"<br>{_text(each, 400)}" for each in told)
    return f'<p class="quiet">{_text(" · ".join(facts), 400)}{note}</p>'


def _reason(decision: DecisionView) -> str:
    """Why this was done, in the words of the rule's author; and if nothing was, where one can be taught."""
    if decision.reason and decision.exlet:
        return f"<p>{_text(decision.reason, 600)}</p>"
    if decision.exlet or decision.retries == "left" or not decision.group:
        return ""
    offers = f"mendflow failures show {_text(decision.group, 40)}"
    return f'<p class="quiet">A rule for it is offered by <code>{offers}</code></p>'


def _trail(decision: DecisionView) -> str:
    """How the rules were evaluated; folded, if the reason is told in words."""
    if not decision.trail:
        return ""
    rows = "".join(_step_row(step, decision) for step in decision.trail)
    head = "".join(f"<th>{word}</th>" for word in ("rule", "held", "condition", "values that decided"))
    table = f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
    if not (decision.reason and decision.exlet):
        return table
    return f"<details><summary>how the rules were evaluated</summary>{table}</details>"


def _step_row(step: TrailStep, decision: DecisionView) -> str:
    held = '<span class="pill mended">held</span>' if step.held else '<span class="pill">no</span>'
    values = ", ".join(f"{name} = {_short(value)}" for name, value in step.values.items()) or step.error or "-"
    number = f"<b>{step.rule}</b>" if step.rule == decision.rule else str(step.rule)
    return (
        f"<tr><td>{number}</td><td>{held}</td><td><code>{_text(step.condition, 300)}</code></td>"
        f'<td class="remark">{_text(values, 400)}</td></tr>'
    )


def _steps(decision: DecisionView, steps: Sequence[HistoryEntry]) -> str:
    if decision.exlet_case is None:
        return ""
    case = escape_html(str(decision.exlet_case))
    return f'<p>exlet case <a href="#{anchor(str(decision.exlet_case))}">{case}</a></p>{step_table(steps)}'


def _short(value: Value) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return one_line(text, VALUE_CHARS_MAX)


def _text(text: str, limit: int) -> str:
    return escape_html(one_line(text, limit))
