"""The tables of the report: failures by cause, resources by name, outputs, and items.

All are bounded, whatever the size of the case, and say what they leave out."""

import json
from collections import defaultdict

import msgspec

from mendflow.core.model import flow as model
from mendflow.core.model.faults import Fault
from mendflow.core.model.named_limits import limit_text
from mendflow.core.model.values import Value, file_of
from mendflow.core.model.views import ItemView
from mendflow.pages.attempts import is_mended, ran_ms, started_attempts, times_of
from mendflow.pages.boxes import inner_activities
from mendflow.pages.formatting import (
    count_text,
    duration_text,
    escape_html,
    one_line,
    plain_text,
    short_time_text,
    size_text,
)

GROUPS_MAX = 40
LOG_CHARS_MAX = 6_000
TOOK_TITLE = ' title="how long it ran, all attempts together, without waits and transfers"'
ROWS_MAX = 1_500
CELL_CHARS_MAX = 160
OUTPUT_CHARS_MAX = 4_000


class _Group(msgspec.Struct):
    """Failures of one name with one message. `mended` are those where a later attempt succeeded."""

    name: str
    fault: Fault
    items: list[str] = []
    attempts: int = 0
    mended_count: int = 0
    log_tail: str = ""


def failures(case_fault: Fault | None, items: list[ItemView]) -> str:
    groups = sorted(
        _groups(items).values(), key=lambda group: (group.mended_count == len(group.items), -group.attempts)
    )
    parts = [_case_fault(case_fault)] if case_fault else []
    parts += [_failure(group, opened=index == 0) for index, group in enumerate(groups[:GROUPS_MAX])]
    if len(groups) > GROUPS_MAX:
        parts.append(f'<p class="quiet">and {count_text(len(groups) - GROUPS_MAX, "more cause")}.</p>')
    return "".join(parts) or '<p class="quiet">Nothing failed.</p>'


def resources(flow: model.Flow, items: list[ItemView], now: int) -> str:
    """What each name used, beside what it asked for."""
    by_name: dict[str, list[ItemView]] = defaultdict(list)
    for item in items:
        if started_attempts(item):
            by_name[item.name].append(item)
    if not by_name:
        return '<p class="quiet">No job has run.</p>'
    asked = _requested_jobs(flow.body)
    rows = [_resource_row(name, group, asked.get(name), now) for name, group in list(by_name.items())[:300]]
    heads = ("job", "attempts", "median run time", "longest", "CPU time", "peak memory", "memory asked", "used of it")
    head = "".join(f"<th>{word}</th>" for word in heads)
    table = f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
    return table + _limits_and_secrets({name: asked[name] for name in by_name if name in asked})


def _limits_and_secrets(jobs: dict[str, model.JobActivity]) -> str:
    """The named limits and the secrets that jobs use, by name; the value of a secret is nowhere."""
    rows = []
    for name, job in jobs.items():
        limits = ", ".join(limit_text(*each) for each in job.limits.named)
        secrets = ", ".join(dict.fromkeys(use.name for use in job.secrets))
        if limits or secrets:
            cells = "".join(f"<td>{_text(each or '-', 200)}</td>" for each in (limits, secrets))
            rows.append(f"<tr><th>{_text(name, 60)}</th>{cells}</tr>")
    if not rows:
        return ""
    head = "<th>job</th><th>named limits</th><th>secrets</th>"
    shown = "".join(rows[:300])
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{shown}</tbody></table></div>'


def values_table(values: dict[str, Value], if_none: str) -> str:
    if not values:
        return f'<p class="quiet">{if_none}</p>'
    rows = "".join(f"<tr><th>{_text(name)}</th><td>{_value(value)}</td></tr>" for name, value in values.items())
    return f'<table class="pairs"><tbody>{rows}</tbody></table>'


def items_table(items: list[ItemView], now: int) -> str:
    """Failed items first, then mended ones, then the others in order."""
    order = sorted(items, key=lambda item: (item.state != "failed", not is_mended(item), item.serial))
    shown = order[:ROWS_MAX]
    note = count_text(len(items), "item")
    if len(shown) < len(items):
        note = f"{len(shown):,} of {len(items):,} items, failed and mended ones first; mendflow items has them all"
    rows = "".join(_item_row(item, now) for item in shown)
    heads = ("item", "kind", "state", "attempts", "began", "took", "CPU", "peak memory", "remark")
    head = "".join(f"<th{TOOK_TITLE if word == 'took' else ''}>{word}</th>" for word in heads)
    return (
        '<p class="tools"><input id="find" type="search" placeholder="Find items, states, words" '
        f'aria-label="Find in the items"> <span class="quiet" id="found">{note}</span></p>'
        f'<div class="scroll tall"><table id="items"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
    )


def _text(text: str, limit: int = CELL_CHARS_MAX) -> str:
    return escape_html(one_line(text, limit))


def _groups(items: list[ItemView]) -> dict[tuple[str, str], _Group]:
    groups: dict[tuple[str, str], _Group] = {}
    for item in items:
        faults = [attempt.fault for attempt in item.attempts if attempt.fault]
        if item.fault and item.state == "failed" and item.fault not in faults:
            faults.append(item.fault)
        for fault in faults:
            group = groups.setdefault((item.name, fault.message), _Group(name=item.name, fault=fault))
            group.attempts += 1
            group.log_tail = group.log_tail or fault.log_tail or item.log_tail
            if item.shown not in group.items[-1:]:
                group.items.append(item.shown)
                group.mended_count += item.state == "completed"
    return groups


def _case_fault(fault: Fault) -> str:
    return f'<p class="fault">The case failed: {_text(fault.message, 500)}</p>'


def _failure(group: _Group, *, opened: bool) -> str:
    fault, number = group.fault, len(group.items)
    failed = number - group.mended_count
    badges = (f'<span class="pill failed">{failed:,} failed</span>' if failed else "") + (
        f'<span class="pill mended">{group.mended_count:,} mended</span>' if group.mended_count else ""
    )
    facts = [f"a fault of the kind {fault.category.value}", count_text(group.attempts, "failed attempt")]
    facts += [f"exit code {fault.exit_code}"] if fault.exit_code is not None else []
    facts += [f"signal {fault.signal}"] if fault.signal else []
    named = ", ".join(group.items[:6]) + (f" and {number - 6:,} more" if number > 6 else "")
    which = f"<br>{_text(named, 400)}" if named != group.name else ""
    log = plain_text(group.log_tail)[-LOG_CHARS_MAX:].strip("\n")
    shown = f"<pre>{escape_html(log)}</pre>" if log else '<p class="quiet">It left no log.</p>'
    return (
        f'<details class="failure{"" if failed else " made-good"}"{" open" if opened else ""}>'
        f"<summary><b>{_text(group.name)}</b> "
        f"<span>{_text(fault.message, 300)}</span> {badges}</summary>"
        f'<p class="quiet">{escape_html(" · ".join(facts))}{which}</p>{shown}</details>'
    )


def _requested_jobs(body: model.Activity) -> dict[str, model.JobActivity]:
    found, open_nodes = {}, [body]
    while open_nodes:
        node = open_nodes.pop()
        if isinstance(node, model.JobActivity):
            found[node.label or node.name] = node
        open_nodes.extend(inner_activities(node))
    return found


def _resource_row(name: str, items: list[ItemView], job: model.JobActivity | None, now: int) -> str:
    attempts = [attempt for item in items for attempt in started_attempts(item)]
    took = sorted(ended - started for started, ended in (times_of(attempt, now) for attempt in attempts))
    peak = max(attempt.peak_bytes for attempt in attempts)
    wanted = job.resources.memory_bytes if job else 0
    asked, used = "-", "-"
    if isinstance(wanted, int) and wanted > 0:
        share = peak / wanted
        asked = size_text(wanted)
        used = (
            "-" if not peak else f'<meter min="0" max="1" high="0.9" value="{min(share, 1):.3f}"></meter> {share:.0%}'
        )
    elif isinstance(wanted, str):
        asked = _text(wanted, 40)
    cells = [count_text(len(attempts), "attempt").split()[0], duration_text(took[len(took) // 2])]
    cells += [duration_text(took[-1]), duration_text(sum(attempt.cpu_ms for attempt in attempts))]
    cells.append(size_text(peak) if peak else "-")
    return f"<tr><th>{_text(name, 60)}</th>" + "".join(f"<td>{cell}</td>" for cell in (*cells, asked, used)) + "</tr>"


def _value(value: Value) -> str:
    ref = file_of(value)
    if ref:
        return f'{_text(ref.name)} <span class="quiet">{size_text(ref.bytes)}, sha256 {_text(ref.sha256[:16])}…</span>'
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2, default=str)
    text = plain_text(text)
    cut = text if len(text) <= OUTPUT_CHARS_MAX else text[:OUTPUT_CHARS_MAX] + " …"
    return f"<code>{escape_html(cut)}</code>"


def _image(item: ItemView) -> str:
    """The image that a job's command ran in."""
    digest = f' title="{escape_html(item.image)}"' if item.image else ""
    return f' <span class="quiet"{digest}>in {_text(item.container, 60)}</span>' if item.container else ""


def _item_row(item: ItemView, now: int) -> str:
    unbegun = item.kind == "job" and not item.attempts and item.ended_at
    began = 0 if unbegun else item.attempts[0].granted_at if item.attempts else item.created_at
    ran = ran_ms(item, now)
    remark = item.fault.message if item.fault else item.cache_reason or item.reason or item.command
    cpu, peak = sum(a.cpu_ms for a in item.attempts), max((a.peak_bytes for a in item.attempts), default=0)
    state = "mended" if is_mended(item) else item.state
    runs = f" in {len(item.earlier_runs) + 1} runs" if item.earlier_runs else ""
    cells = [
        f"<th>{_text(item.shown, 100)}</th>",
        f"<td>{_text(item.kind, 20)}{_image(item)}</td>",
        f'<td><span class="pill {escape_html(state)}">{escape_html(state)}</span></td>',
        f"<td>{len(started_attempts(item)) or '-'}{runs}</td>",
        f"<td>{short_time_text(began)[11:] or '-'}</td>",
        f"<td>{'-' if ran is None else duration_text(ran)}</td>",
        f"<td>{duration_text(cpu) if cpu else '-'}</td>",
        f"<td>{size_text(peak) if peak else '-'}</td>",
        f'<td class="remark">{_text(remark)}</td>',
    ]
    return f"<tr>{''.join(cells)}</tr>"
