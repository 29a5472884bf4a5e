"""What is told when a case has ended: how it went, what came out, what failed and what to do about it."""

import asyncio
from collections import Counter
from importlib.metadata import version
from pathlib import Path, PurePosixPath

import msgspec
from rich.text import Text

from mendflow.cli.printing import STYLES, console, say
from mendflow.client import Client
from mendflow.core.model.values import FileRef, Value, file_of
from mendflow.core.model.views import CaseView, ItemView
from mendflow.report.page import render
from mendflow.report.words import count_text, duration_text, one_line, plain, size_text

PAGE_ITEMS = 20_000
"""Each page costs the server a look at all items, so few and large ones."""

FAILURES_SHOWN = 5
LOG_LINES_SHOWN = 8
VALUE_CHARS_SHOWN = 300


async def all_items(client: Client, case: str) -> list[ItemView]:
    """Every item of a case, page by page."""
    items: list[ItemView] = []
    while True:
        page = await client.items(case, limit=PAGE_ITEMS, offset=len(items))
        items += page
        if len(page) < PAGE_ITEMS:
            return items


async def write_report(client: Client, case: CaseView, items: list[ItemView], path: Path) -> Path:
    flow = await client.flow_of(case.id)
    page = render(case, flow, items, version=version("mendflow"))
    await asyncio.to_thread(_write_page, path, page)
    return path


def _write_page(path: Path, page: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page, encoding="utf-8")


async def fetch_outputs(client: Client, case: CaseView, folder: Path) -> dict[str, Path]:
    """Fetch each output file, and tell where it went by the place that it has in the outputs."""
    fetched: dict[str, Path] = {}
    for place, ref in _files(case.outputs, ""):
        path = folder / _file_name(place, ref, taken={path.name for path in fetched.values()})
        fetched[place] = await client.download(ref, path)
    return fetched


def print_summary(case: CaseView, items: list[ItemView], fetched: dict[str, Path], report: Path | None) -> None:
    attempts = [attempt for item in items for attempt in item.attempts]
    jobs = [count for count in case.counts if count.kind == "job"] or case.counts
    took = duration_text(max(case.ended_at - case.started_at, 0))
    line = Text.assemble((str(case.id), "bold"), " ", (case.status, STYLES.get(case.status, "")), f" in {took}")
    say(line)
    words = ("done", "failed", "mended", "reused", "skipped")
    totals = {word: sum(getattr(count, word) for count in jobs) for word in words}
    told = ", ".join(f"{number:,} {word}" for word, number in totals.items() if number or word == "done")
    say(f"  jobs         {told}")
    say(f"  cpu          {duration_text(sum(attempt.cpu_ms for attempt in attempts))}")
    say(f"  peak memory  {size_text(max((attempt.peak_bytes for attempt in attempts), default=0))}")
    _print_outputs(case, fetched)
    _print_ran_again(items)
    _print_failures(case, items)
    if report is not None:
        say(f"report: {_relative(report)}")


def result_json(case: CaseView, fetched: dict[str, Path], report: Path | None) -> dict[str, Value]:
    """The case as `run --json` tells it: the view, and where files went."""
    view: dict[str, Value] = msgspec.to_builtins(case)
    files = {place: str(path) for place, path in fetched.items()}
    return {**view, "output_files": files, "report": str(report) if report else None}


def _print_outputs(case: CaseView, fetched: dict[str, Path]) -> None:
    if case.outputs:
        say("outputs:")
    for name, value in case.outputs.items():
        ref = file_of(value)
        if ref and name in fetched:
            say(f"  {one_line(name)}: {_relative(fetched[name])} ({size_text(ref.bytes)})")
            continue
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        say(f"  {one_line(name)}: {one_line(text, VALUE_CHARS_SHOWN)}")
        for place, path in fetched.items():
            if place.startswith((f"{name}.", f"{name}[")):
                say(f"    {one_line(place)}: {_relative(path)}")


def _print_ran_again(items: list[ItemView]) -> None:
    """Why jobs were not taken over from an earlier case, each reason once."""
    reasons = Counter((item.name, item.reused) for item in items if item.reused and item.state != "reused")
    for (name, reason), number in reasons.most_common(FAILURES_SHOWN):
        times = f" ({count_text(number, 'item')})" if number > 1 else ""
        say(f"ran again: {one_line(name, 40)}: {one_line(reason.removeprefix('run again: '), 200)}{times}")


def _print_failures(case: CaseView, items: list[ItemView]) -> None:
    if case.status == "completed":
        return
    failed = [item for item in items if item.state == "failed"]
    if case.fault and not any(item.fault and item.fault.message == case.fault.message for item in failed):
        say(f"why: {one_line(case.fault.message, 400)}")
    if failed:
        say("failed:")
    for item in failed[:FAILURES_SHOWN]:
        message = one_line(item.fault.message, 200) if item.fault else "failed"
        say(Text.assemble((f"  {one_line(str(item.item), 60)}", "red"), f": {message}"))
        log = plain((item.fault.log_tail if item.fault else "") or item.log_tail).strip("\n")
        for line in log.splitlines()[-LOG_LINES_SHOWN:]:
            console().print(Text(f"    | {line[:200]}", style="dim"), soft_wrap=True)
    if len(failed) > FAILURES_SHOWN:
        say(f"  and {len(failed) - FAILURES_SHOWN:,} more: mendflow items {case.id} --state failed")
    if failed:
        subject = _quoted(case.id, failed[0])
        say(f"next: mendflow why {subject}, or put it right and mendflow rerun {case.id} --from-failed")


def _quoted(case: str, item: ItemView) -> str:
    subject = f"{case}:{item.item}"
    return f"'{subject}'" if set(subject) & set("[]* $") else subject


def _files(value: Value, place: str) -> list[tuple[str, FileRef]]:
    """Every file in a value, with its place: `tables[2]`, `result.plot`."""
    ref = file_of(value)
    if ref:
        return [(place, ref)]
    if isinstance(value, dict):
        inside = [(f"{place}.{key}" if place else str(key), below) for key, below in value.items()]
    elif isinstance(value, list):
        inside = [(f"{place}[{index}]", below) for index, below in enumerate(value)]
    else:
        return []
    return [found for where, below in inside for found in _files(below, where)]


def _file_name(place: str, ref: FileRef, taken: set[str]) -> str:
    """The file's own name, harmless, and made different if it is taken."""
    safe = "".join(char if char.isalnum() or char in "._-+=@" else "_" for char in PurePosixPath(ref.name).name)
    name = safe.lstrip(".")[:120] or "file"
    if name in taken:
        name = "".join(char if char.isalnum() or char in "_-" else "_" for char in place) + "-" + name
    number = 2
    while name in taken:
        name, number = f"{number}-{name}", number + 1
    return name


def _relative(path: Path) -> str:
    """The path as one would type it here."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
