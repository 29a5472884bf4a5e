"""Reads a trace from a text, or reports every problem with its place and what to do.

The format permits extensions, so unknown keys are ignored. Known ones must be valid and consistent: a trace is accepted
as a whole or not at all."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from mendflow.core.model.errors import BadFlow, Problem
from mendflow.formats.spelling import nearest_word
from mendflow.formats.wfformat.dependencies import TaskNeeds, cycle_in, producers_of
from mendflow.formats.wfformat.json_positions import invalid_number_in
from mendflow.formats.wfformat.json_values import JsonDocument, JsonValue
from mendflow.formats.wfformat.layouts import TraceLayout, layout_of
from mendflow.formats.wfformat.model import VERSIONS, Trace, TraceTask

SYSTEM_CHARS_MAX: Final = 100
TASKS_MAX: Final = 100_000
NEEDS_MAX: Final = 1_000_000
"""How many tasks a trace may have, and how often they may name each other and files."""

CYCLE_SHOWN_MAX: Final = 6
SECONDS_MAX: Final = 10 * 366 * 86_400.0
NUMBER_MAX: Final = float(2**53)
NO_TRACE: Final = "this is no WfFormat trace"


def read_trace(text: str, file: str) -> Trace:
    """The trace of a text. Raises BadFlow with all that is wrong with it."""
    parts = JsonDocument(text, file)
    root = parts.root(_decode(text, file))
    trace = _trace(root) if root.is_map(NO_TRACE) else None
    parts.demand_none()
    assert trace is not None, "what is not read has a problem"
    return trace


def _decode(text: str, file: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise BadFlow(problems=[_json_problem(text, file, error)]) from None
    except RecursionError:
        message = f"{NO_TRACE}: lists and maps stand too deep in each other; a trace has seven levels"
        raise BadFlow(problems=[Problem(file=file, message=message)]) from None


def _json_problem(text: str, file: str, quick: msgspec.DecodeError) -> Problem:
    """The slower reader knows the place. It takes some numbers that are none in JSON: these are looked for."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        reason = error.msg[:1].lower() + error.msg[1:]
        return Problem(file=file, line=error.lineno, column=error.colno, message=f"this is not JSON: {reason}")
    except (RecursionError, ValueError):
        pass
    word, (line, column) = invalid_number_in(text)
    if not word:
        return Problem(file=file, message=f"this is not JSON: {quick}")
    message = f"this is not JSON: {word:.40} is no number that it can hold; correct it, or leave it out"
    return Problem(file=file, line=line, column=column, message=message)


def _trace(root: JsonValue) -> Trace | None:
    version = root.text("schemaVersion", needed=f"{NO_TRACE}: say which version it has, such as {VERSIONS[1]}")
    if not version:
        return None
    if version not in VERSIONS:
        known = ", ".join(VERSIONS)
        root.at("schemaVersion").problem(f"version {version} is not read here, only {known}; convert the trace")
        return None
    name = root.text("name", needed="a trace has a name")
    layout = layout_of(root, version)
    if layout is None:
        return None
    tasks, stated = list(_tasks(layout)), _stated_needs(layout)
    if root.parts.problems:
        return None
    return Trace(
        name=name,
        version=version,
        description=root.text("description"),
        tasks=_join_tasks(layout, tasks, stated),
        sizes=layout.sizes,
        makespan_s=layout.makespan_s,
        machines=layout.machines,
        machine_cores=layout.machine_cores,
        system=_system(root),
    )


def _system(root: JsonValue) -> str:
    """The name of the system that ran it; whatever else stands there says nothing."""
    given = root.value.get("runtimeSystem") if isinstance(root.value, dict) else None
    name = given.get("name") if isinstance(given, dict) else None
    return name[:SYSTEM_CHARS_MAX] if isinstance(name, str) else ""


def _tasks(layout: TraceLayout) -> Iterator[TraceTask]:
    """The tasks as they say of themselves, before needs are put together."""
    if len(layout.tasks) > TASKS_MAX:
        layout.tasks[0].problem(f"a trace may have {TASKS_MAX:,} tasks, this one has {len(layout.tasks):,}; split it")
        return
    for entry in layout.tasks:
        run = layout.runs.get(entry.id)
        yield TraceTask(
            id=entry.id,
            program=_program(run) if run is not None else "",
            needs=entry.parents,
            reads=entry.reads,
            makes=entry.makes,
            runtime_s=_runtime(run, layout) if run is not None else None,
            cores=run.number("coreCount" if run.has("coreCount") else "cores", least=0, most=1e6) if run else 0.0,
            memory_bytes=int(run.number("memoryInBytes", least=0, most=NUMBER_MAX)) if run else 0,
            priority=int(run.number("priority", least=-1e9, most=1e9)) if run else 0,
        )


def _runtime(run: JsonValue, layout: TraceLayout) -> float | None:
    if not run.has("runtimeInSeconds"):
        if layout.timed:
            run.problem("it does not say how long the task ran; give `runtimeInSeconds`, in seconds, or 0")
        return None
    return run.number("runtimeInSeconds", least=0, most=SECONDS_MAX)


def _program(run: JsonValue) -> str:
    command = run.at("command")
    if command.value is None or not command.is_map("a command is a map with `program` and `arguments`"):
        return ""
    return command.text("program").strip().partition("\n")[0][:200]


def _join_tasks(layout: TraceLayout, tasks: list[TraceTask], stated: TaskNeeds) -> dict[str, TraceTask]:
    """The tasks with all that they need, or the problem that they wait in a cycle."""
    if circle := cycle_in(stated):
        _report_cycle(layout, circle)
        return {}
    made_by = producers_of({task.id: task.reads for task in tasks}, {task.id: task.makes for task in tasks}, stated)
    return {
        task.id: msgspec.structs.replace(
            task,
            needs=tuple(dict.fromkeys((*stated[task.id], *made_by[task.id].values()))),
            made_by=made_by[task.id],
        )
        for task in tasks
    }


def _stated_needs(layout: TraceLayout) -> TaskNeeds:
    """Who waits for whom, said from either side."""
    needs: TaskNeeds = {entry.id: {} for entry in layout.tasks}
    for entry in layout.tasks:
        for place, parent in enumerate(entry.parents):
            if _is_known(layout.called, parent, entry.part.at("parents").at(place), "parent"):
                needs[entry.id][layout.called[parent]] = None
        for place, child in enumerate(entry.children):
            if _is_known(layout.called, child, entry.part.at("children").at(place), "child"):
                needs[layout.called[child]][entry.id] = None
    named = sum(len(entry.parents) + len(entry.reads) + len(entry.makes) for entry in layout.tasks)
    if named > NEEDS_MAX:
        layout.tasks[0].problem(f"the tasks name each other and files {named:,} times, at most {NEEDS_MAX:,} are read")
    return needs


def _is_known(called: Mapping[str, str], name: str, part: JsonValue, kind: str) -> bool:
    if name in called:
        return True
    part.problem(
        f"the {kind} {name!r:.100} is no task of this trace; correct its id, or add the task",
        nearest_word(name, called),
    )
    return False


def _report_cycle(layout: TraceLayout, circle: list[str]) -> None:
    circle_text = " -> ".join(circle[:CYCLE_SHOWN_MAX]) + (" -> ..." if len(circle) > CYCLE_SHOWN_MAX else "")
    entry = next(entry for entry in layout.tasks if entry.id == circle[0])
    path = f"{circle_text} -> {circle[0]}" if len(circle) > 1 else f"{circle[0]} waits for itself"
    entry.problem(f"tasks wait for each other in a cycle: {path}; take one of these parents out")
