"""The summary of an ended case: its result, its outputs, its failures and what to do about them."""

import asyncio
import time
from collections import Counter
from pathlib import Path

import msgspec
from rich.text import Text

from mendflow.cli.case_ending import CaseEnding, leftover_text, own_calls
from mendflow.cli.exit_codes import ExitCode
from mendflow.cli.last_log_lines import end_of_output
from mendflow.cli.output_paths import demand_replaceable
from mendflow.cli.printing import STYLES, print_json, print_output, say
from mendflow.cli.repair_trails import result_word
from mendflow.client import Client
from mendflow.core.engine.partial_results import removal_reason
from mendflow.core.model.jobs import CHANGED_BESIDE
from mendflow.core.model.repair_views import DecisionView
from mendflow.core.model.rules import rule_text
from mendflow.core.model.values import Value, file_of, spilled_file
from mendflow.core.model.views import CaseView, ItemView
from mendflow.core.results.earlier_results import IF_ASKED, PASSED_OVER
from mendflow.core.results.reuse_checks import ALTHOUGH
from mendflow.pages.formatting import count_text, duration_text, one_line, plain_text, size_text
from mendflow.pages.item_counts import counts_text
from mendflow.pages.page import render
from mendflow.python_values.readable import readable
from mendflow.version import VERSION

FAILURES_SHOWN = 5
FACTS_SHOWN = 4
SKIPPED_SHOWN = 3
ELEMENTS_SHOWN = 5
REASONS_SHOWN = 10
PASSED_OVER_SHOWN = 3
CALLED_SHOWN = 10
LOG_LINES_SHOWN = 8
VALUE_CHARS_SHOWN = 300
LINE_CHARS_MAX = 80
LINES_SHOWN = 10


async def write_report(client: Client, ending: CaseEnding, path: Path) -> Path:
    flow = await client.flow_of(ending.case.id)
    present = await client.why(ending.case.id) if not ending.case.ended_at else None
    page = render(
        ending.case,
        flow,
        ending.items,
        called=ending.called,
        called_items=ending.called_items,
        decisions=ending.decisions,
        steps=ending.steps,
        undone=[*ending.undone, *(f"Incomplete: {sentence}" for sentence in ending.partial)],
        present=[present.sentence, *present.facts[:FACTS_SHOWN]] if present is not None else [],
        now=0 if ending.case.ended_at else int(time.time() * 1000),
        version=VERSION,
    )
    await asyncio.to_thread(_write_page, path, page)
    return path


def _write_page(path: Path, page: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    demand_replaceable(path)
    path.write_text(page, encoding="utf-8")


def print_summary(
    ending: CaseEnding, fetched: dict[str, Path], *, source: str = "", wanted_in: Path | None = None
) -> None:
    """Print everything except the report. `source` is how to run the flow file again, `wanted_in` the folder that was
    named for output files."""
    case = ending.case
    attempts = [attempt for item in (*ending.items, *ending.called_items) for attempt in item.attempts]
    peak = max((attempt.peak_bytes for attempt in attempts), default=0)
    took = duration_text(max(case.ended_at - case.started_at, 0))
    say(Text.assemble((str(case.id), "bold"), " ", (case.status, STYLES.get(case.status, "")), f" in {took}"))
    for name, totals in totals_by_kind(ending):
        say(f"  {name:<12} {totals}")
    say(f"  cpu          {duration_text(sum(attempt.cpu_ms for attempt in attempts))}")
    say(f"  peak memory  {size_text(peak) if peak else '-'}")
    _print_called(ending)
    _print_repairs(ending)
    for sentence in ending.undone[:FAILURES_SHOWN]:
        say(one_line(sentence, 300))
    for sentence in ending.partial[:FAILURES_SHOWN]:
        say(Text.assemble(("incomplete", STYLES["mended"]), f": {one_line(sentence, 300)}"))
    _print_outputs(case, fetched)
    if wanted_in is not None and not case.outputs and case.status == "completed":
        say(
            f"nothing was written to {relative(wanted_in)}: the flow names no outputs. `outputs:` in the flow does, as"
            ' `outputs: {table: "${{ jobs.NAME.files.table }}"}`; a flow in Python returns them'
        )
    _print_ran_again([*ending.items, *ending.called_items])
    _print_code_mismatch([*ending.items, *ending.called_items], source or f"mendflow rerun {case.id}")
    _print_left_running([*ending.items, *ending.called_items])
    if case.status != "cancelled":
        _print_removed(ending.items)
    if case.status == "completed":
        _print_skipped(ending.items)
    _print_failures(case, ending.items, ending.tolerated, source)
    for job in ending.left[:FAILURES_SHOWN]:
        say(f"left behind: {one_line(leftover_text(job), 200)}")
    if len(ending.left) > FAILURES_SHOWN:
        say(f"  and {len(ending.left) - FAILURES_SHOWN:,} more: mendflow jobs --case {case.id}")


def print_held(case: CaseView, *, json: bool) -> ExitCode:
    """A case that waits for a person: something failed, and no rule took it up."""
    if json:
        print_json(case)
    else:
        say(Text.assemble((str(case.id), "bold"), " is ", ("held", STYLES["held"]), f": {', '.join(case.held)} failed"))
        say(f"  mendflow why {case.id} says why; mendflow failures is where you can teach a rule")
        say(f"  then mendflow resume {case.id} tries it again, and mendflow cancel {case.id} ends it")
    return ExitCode.CASE_FAILED


def totals_by_kind(ending: CaseEnding) -> list[tuple[str, str]]:
    """jobs: 5 done in 2 cases; user tasks: 1 done; calls: 1 done. These are the items of the case and of the cases that
    its flow called; what repairs ran, or undid, is told among the repairs."""
    lines = []
    for kind in ("job", "user-task", "call"):
        counts = [[count for count in each.counts if count.kind == kind] for each in (ending.case, *own_calls(ending))]
        if not any(counts) and (kind != "job" or ending.case.counts):
            continue
        text = counts_text([count for case in counts for count in case], shows_none_done=True)
        cases = sum(1 for case in counts if case)
        lines.append((f"{kind.replace('-', ' ')}s", text + (f" in {cases:,} cases" if cases > 1 else "")))
    return lines


def result_json(case: CaseView, fetched: dict[str, Path], report: Path | None) -> dict[str, Value]:
    """The case as `run --json` prints it: the view, and the local paths of files."""
    view: dict[str, Value] = msgspec.to_builtins(case)
    files = {place: str(path) for place, path in fetched.items()}
    return {**view, "output_files": files, "report": str(report) if report else None}


def _print_called(ending: CaseEnding) -> None:
    called = own_calls(ending)
    if called:
        say("called:")
    for case in called[:CALLED_SHOWN]:
        counts = counts_text(case.counts) or "nothing done"
        say(
            Text.assemble(
                f"  {case.id} ({one_line(case.flow, 40)}) ", (case.status, STYLES.get(case.status, "")), f": {counts}"
            )
        )
    if len(called) > CALLED_SHOWN:
        say(f"  and {len(called) - CALLED_SHOWN:,} more: mendflow cases")


def _print_repairs(ending: CaseEnding) -> None:
    """Print which repairs there were and their results, the most frequent first, and what was not repaired."""
    repairs: dict[tuple[str, str], list[DecisionView]] = {}
    for decision in ending.decisions:
        if decision.exlet:
            ordered = f"ordered by {decision.ordered_by}" if decision.ordered_by else "by hand"
            by = rule_text(decision.rules, decision.rule) if decision.rules else ordered
            repairs.setdefault((decision.exlet, by), []).append(decision)
    if repairs:
        say("repairs:")
    last = {_subject(decision): decision.id for decision in ending.decisions}
    for (exlet, by), decisions in sorted(repairs.items(), key=lambda each: -len(each[1]))[:FAILURES_SHOWN]:
        say(f"  {one_line(exlet, 60)} ({one_line(by, 60)}): {_repairs_text(decisions, last)}")
    if len(repairs) > FAILURES_SHOWN:
        say(f"  and {len(repairs) - FAILURES_SHOWN:,} more kinds: mendflow history {ending.case.id}")
    waiting = [decision for decision in ending.decisions if decision.state == "waiting"]
    if waiting:
        say(f"  {count_text(len(waiting), 'exception')} wait for a person: mendflow mend {ending.case.id}")


def _repairs_text(decisions: list[DecisionView], last: dict[str, str]) -> str:
    """2 recovered, in 6 repairs: each item counts once, as what its last repair of this kind came to. `last` has the
    last decision about each."""
    words = {_subject(each): result_word(each, is_last=last[_subject(each)] == each.id) for each in decisions}
    text = ", ".join(f"{number:,} {word}" for word, number in Counter(words.values()).most_common())
    return f"{text}, in {count_text(len(decisions), 'repair')}" if len(decisions) > len(words) else text


def _subject(decision: DecisionView) -> str:
    return f"{decision.case}:{decision.item or ''}"


def _print_outputs(case: CaseView, fetched: dict[str, Path]) -> None:
    if case.outputs:
        say("outputs:")
    for name, value in case.outputs.items():
        ref = file_of(value) or spilled_file(value)
        if ref and name in fetched:
            say(f"  {one_line(name)}: {relative(fetched[name])} ({size_text(ref.bytes)})")
            continue
        inside = {place: path for place, path in fetched.items() if place.startswith((f"{name}.", f"{name}["))}
        shown = _with_file_names(readable(value))
        lines = [f"{place}: {relative(path)}" for place, path in inside.items()] or _value_lines(shown)
        if len(lines) == 1 and not inside:
            say(f"  {one_line(name)}: {one_line(lines[0], VALUE_CHARS_SHOWN)}")
            continue
        say(f"  {one_line(name)}: {count_text(len(lines), 'file' if inside else 'value')}")
        for line in lines[:LINES_SHOWN]:
            say(f"    {one_line(line, VALUE_CHARS_SHOWN)}")
        if len(lines) > LINES_SHOWN:
            say(f"    and {len(lines) - LINES_SHOWN:,} more: mendflow cases --json")


def _with_file_names(value: Value) -> Value:
    """The value, with what a person would call each file that was not written here."""
    if (ref := file_of(value) or spilled_file(value)) is not None:
        return f"{ref.name or 'a file'} ({size_text(ref.bytes)}, stored)"
    if isinstance(value, dict):
        return {key: _with_file_names(each) for key, each in value.items()}
    return [_with_file_names(each) for each in value] if isinstance(value, list) else value


def _value_lines(value: Value) -> list[str]:
    """A value in one line, or a line for each of its parts if it would be long."""
    text = _text(value)
    if len(text) <= LINE_CHARS_MAX or not isinstance(value, list | dict):
        return [text]
    return (
        [f"{key}: {_text(each)}" for key, each in value.items()] if isinstance(value, dict) else list(map(_text, value))
    )


def _text(value: Value) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _print_ran_again(items: list[ItemView]) -> None:
    """Which cases made the results that came from the cache, and why others did not, each reason once."""
    origins = Counter(item.cached_from.rpartition("/")[0] for item in items if item.cached_from)
    for case, number in origins.most_common(REASONS_SHOWN):
        say(f"cached: {count_text(number, 'result')} of case {case}")
    if len(origins) > REASONS_SHOWN:
        say(f"  and {len(origins) - REASONS_SHOWN:,} more cases: mendflow items {items[0].case} --json")
    unchecked = list(dict.fromkeys(item.name for item in items if ALTHOUGH in item.cache_reason and item.cached_from))
    if unchecked:
        more = f", and {len(unchecked) - REASONS_SHOWN:,} more" if len(unchecked) > REASONS_SHOWN else ""
        names = ", ".join(one_line(name, 40) for name in unchecked[:REASONS_SHOWN])
        say(f"taken although not all that they read or do is declared: {names}{more}")
    ran = [item for item in items if item.attempts and item.cache_reason.startswith("run again")]
    reasons = Counter((item.name, item.cache_reason) for item in ran)
    telling = sorted(reasons.items(), key=lambda each: ("did not complete" in each[0][1], -each[1]))
    for (name, reason), number in telling[:REASONS_SHOWN]:
        times = f" ({count_text(number, 'item')})" if number > 1 else ""
        say(f"ran again: {one_line(name, 40)}: {one_line(reason.removeprefix('run again: '), 200)}{times}")
    if len(telling) > REASONS_SHOWN:
        say(f"  and {len(telling) - REASONS_SHOWN:,} more names: mendflow items {items[0].case} --json")
    _print_passed_over(items)
    new: dict[str, list[str]] = {}
    for item in items:
        if item.cache_reason.startswith("new: "):
            new.setdefault(item.name, []).append(item.element)
    for name, elements in list(new.items())[:REASONS_SHOWN]:
        more = f" and {len(elements) - ELEMENTS_SHOWN:,} more" if len(elements) > ELEMENTS_SHOWN else ""
        say(f"new: {one_line(name, 40)}: {one_line(', '.join(elements[:ELEMENTS_SHOWN]), 200)}{more}")


def _print_passed_over(items: list[ItemView]) -> None:
    """Which jobs ran although their results were there, in one line, each reason once."""
    names: dict[str, list[str]] = {}
    for item in items:
        if item.cache_reason.startswith(PASSED_OVER):
            listed = names.setdefault(item.cache_reason.removeprefix(PASSED_OVER).removesuffix(IF_ASKED), [])
            listed += [] if item.name in listed else [item.name]
    if not names:
        return
    told = [f"{_names_text(listed)} ({reason})" for reason, listed in list(names.items())[:PASSED_OVER_SHOWN]]
    told += [f"and {len(names) - PASSED_OVER_SHOWN:,} more"] if len(names) > PASSED_OVER_SHOWN else []
    say(f"ran although there are results, which --cached uses: {one_line('; '.join(told), 500)}")


def _names_text(names: list[str]) -> str:
    more = f" and {len(names) - ELEMENTS_SHOWN:,} more" if len(names) > ELEMENTS_SHOWN else ""
    return ", ".join(one_line(name, 40) for name in names[:ELEMENTS_SHOWN]) + more


def _print_code_mismatch(items: list[ItemView], again: str) -> None:
    """Which results were made by code that somebody changed while the case ran: they may not fit the others."""
    made = [item for item in items if item.code_mismatch]
    if not made:
        return
    more = f" and {len(made) - ELEMENTS_SHOWN:,} more" if len(made) > ELEMENTS_SHOWN else ""
    names = ", ".join(one_line(item.item, 60) for item in made[:ELEMENTS_SHOWN])
    files = sorted({item.code_mismatch.partition(CHANGED_BESIDE)[0] for item in made})
    say(
        f"made by other code than the case began with: {names}{more}"
        f" ({one_line(', '.join(files), 200)} changed meanwhile); {again} makes them again"
    )


def _print_left_running(items: list[ItemView]) -> None:
    """Which scripts ended before what they had started: something may be missing in what they made."""
    left = [item for item in items if item.left_running and not item.fault]
    for item in left[:ELEMENTS_SHOWN]:
        say(Text.assemble((f"{one_line(item.shown, 60)}", STYLES["mended"]), f": {one_line(item.left_running, 300)}"))
    if len(left) > ELEMENTS_SHOWN:
        more = len(left) - ELEMENTS_SHOWN
        say(f"  and {more:,} more scripts that did not `wait`: mendflow items {left[0].case} --json")


def _print_removed(items: list[ItemView]) -> None:
    """What somebody cancelled while the case ran: nothing that needs it has run."""
    told = [(item, reason) for item in items if (reason := removal_reason(item))]
    for item, reason in told[:FAILURES_SHOWN]:
        say(f"cancelled: {one_line(item.shown, 100)}: {one_line(reason, 200)}")
    if len(told) > FAILURES_SHOWN:
        say(f"  and {len(told) - FAILURES_SHOWN:,} more were cancelled")


def _print_skipped(items: list[ItemView]) -> None:
    """What the flow left out in a case that is completed: whoever expected it sees why it did not run."""
    told = [item for item in items if item.state == "skipped" and item.reason]
    for item in told[:SKIPPED_SHOWN]:
        say(f"skipped: {one_line(item.shown, 100)} ({one_line(item.reason, 200)})")
    if len(told) > SKIPPED_SHOWN:
        say(f"  and {len(told) - SKIPPED_SHOWN:,} more were skipped: mendflow items {told[0].case}")


def _print_failures(case: CaseView, items: list[ItemView], tolerated: set[str], source: str) -> None:
    failed = sorted(
        (item for item in items if item.state == "failed"), key=lambda item: not _ended_the_case(case, item)
    )
    completed = case.status == "completed"
    passed_over = [item for item in failed if completed or item.item in tolerated]
    if passed_over:  # the flow tolerates it, or handles it
        say("failed, and the flow went on:")
    _print_failed_items(case, passed_over, log_lines=0)
    if completed:
        return
    failed = [item for item in failed if item.item not in tolerated]
    if case.fault and not any(item.fault and item.fault.message == case.fault.message for item in failed):
        say(f"why: {one_line(case.fault.message, 400)}")
    if failed:
        say("failed:")
    _print_failed_items(case, failed, log_lines=LOG_LINES_SHOWN)
    if failed:
        again = source or f"mendflow rerun {case.id} --from-failed"
        say(f"next: mendflow why {_quoted_subject(case.id, failed[0])}, or fix it and {again}")


def _print_failed_items(case: CaseView, failed: list[ItemView], *, log_lines: int) -> None:
    """Print each failure once, with how many others of its name failed in the same words."""
    alike: dict[tuple[str, str], list[ItemView]] = {}
    for item in failed:
        alike.setdefault((item.name, _message_of(item)), []).append(item)
    for (_, message), items in list(alike.items())[:FAILURES_SHOWN]:
        first, others = items[0], f" and {len(items) - 1:,} more" if len(items) > 1 else ""
        say(Text.assemble((f"  {one_line(first.shown, 100)}{others}", "red"), f": {message}"))
        log = plain_text((first.fault.log_tail if first.fault else "") or first.log_tail).strip("\n")
        print_output(end_of_output(log, log_lines) if log_lines else [])
    left = sum(len(items) for items in list(alike.values())[FAILURES_SHOWN:])
    if left or len(alike) < len(failed):
        say(f"  {f'and {left:,} more' if left else 'each of them'}: mendflow items {case.id} --state failed")


def _message_of(item: ItemView) -> str:
    return one_line(item.fault.message.removeprefix(f"{item.shown}: "), 400) if item.fault else "failed"


def _ended_the_case(case: CaseView, item: ItemView) -> bool:
    """Whether this item's fault ended the case: nothing caught it."""
    fault, own = case.fault, item.fault
    return fault is not None and own is not None and (own.name, own.message) == (fault.name, fault.message)


def _quoted_subject(case: str, item: ItemView) -> str:
    subject = f"{case}:{item.item}"
    return f"'{subject}'" if set(subject) & set("[]* $") else subject


def relative(path: Path) -> str:
    """The path relative to the current folder."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
