"""The layouts of the format's versions.

Since 1.5 there are two lists of tasks: their specification and their execution; files have their own list. In 1.4 one
list has everything, each task with its files, and tasks refer to each other by name or id."""

from collections.abc import Iterable

import msgspec

from mendflow.formats.spelling import nearest_word
from mendflow.formats.wfformat.json_values import JsonDocument, JsonValue

BYTES_MAX = float(2**53)


class TaskEntry(msgspec.Struct):
    """A task as the file states it, and where."""

    part: JsonValue
    id: str
    parents: tuple[str, ...]
    children: tuple[str, ...]
    reads: tuple[str, ...]
    makes: tuple[str, ...]

    def problem(self, message: str) -> None:
        self.part.problem(message)


class TraceLayout(msgspec.Struct):
    """`called` maps every word that a task may be named by to its id; `runs` has where it is said how a task ran. If it
    is `timed`, that has to be said."""

    parts: JsonDocument
    tasks: list[TaskEntry]
    called: dict[str, str]
    runs: dict[str, JsonValue]
    sizes: dict[str, int]
    timed: bool
    makespan_s: float = 0.0
    machines: int = 0
    machine_cores: int = 0


def layout_of(root: JsonValue, version: str) -> TraceLayout | None:
    workflow = root.at("workflow")
    if not workflow.is_map("`workflow` is a map with the tasks"):
        return None
    return _flat_layout(workflow) if version == "1.4" else _split_layout(workflow)


def _split_layout(workflow: JsonValue) -> TraceLayout | None:
    """1.5 and later."""
    specification, execution = workflow.at("specification"), workflow.at("execution")
    if not specification.is_map("`specification` is a map with `tasks` and `files`"):
        return None
    sizes = _sizes(specification)
    has_files = specification.has("files")
    tasks = []
    for part in _maps(specification, "tasks", "a trace has `tasks`"):
        reads, makes = part.texts("inputFiles"), part.texts("outputFiles")
        for key, files in (("inputFiles", reads), ("outputFiles", makes)):
            for file in files:
                if not has_files:
                    sizes.setdefault(file, 0)
                elif file not in sizes:
                    message = f"the file {file!r:.100} is not in `specification.files`; add it with its size"
                    part.at(key).problem(message, nearest_word(file, sizes))
        name = part.text("id", needed="each task has an id of its own")
        tasks.append(TaskEntry(part, name, part.texts("parents"), part.texts("children"), reads, makes))
    called = _ids_by_name(tasks)
    layout = TraceLayout(workflow.parts, tasks, called, {}, sizes, timed=True)
    if execution.value is not None and execution.is_map("`execution` is a map with `tasks`"):
        layout.runs = _runs(execution, called)
        layout.makespan_s = execution.number("makespanInSeconds", least=0, most=BYTES_MAX)
        layout.machines, layout.machine_cores = _machines(execution)
    return layout


def _sizes(specification: JsonValue) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for part in _maps(specification, "files", ""):
        file = part.text("id", needed="each file has an id of its own")
        if not part.has("sizeInBytes"):
            part.problem("it does not say how large the file is; give `sizeInBytes`")
        size = int(part.number("sizeInBytes", least=0, most=BYTES_MAX))
        if file in sizes:
            part.problem(f"two files have the id {file!r:.100}; give each its own")
        sizes[file] = size
    return sizes


def _runs(execution: JsonValue, called: dict[str, str]) -> dict[str, JsonValue]:
    runs: dict[str, JsonValue] = {}
    for part in _maps(execution, "tasks", "an execution has `tasks`"):
        task = part.text("id", needed="say of which task this is")
        if task and task not in called:
            part.problem(
                f"the task {task!r:.100} is not in `specification.tasks`; correct its id", nearest_word(task, called)
            )
        elif task in runs:
            part.problem(f"the task {task!r:.100} ran twice; leave one of the two")
        runs[task] = part
    for task in called:
        if task not in runs:
            execution.problem(f"nothing is said of how the task {task!r:.100} ran; add it to `execution.tasks`")
    return runs


def _flat_layout(workflow: JsonValue) -> TraceLayout:
    """1.4: all of a task in one place."""
    sizes: dict[str, int] = {}
    tasks: list[TaskEntry] = []
    runs: dict[str, JsonValue] = {}
    names: dict[str, str] = {}
    for part in _maps(workflow, "tasks", "a trace has `tasks`"):
        name = part.text("name", needed="each task has a name")
        task = part.text("id") or name
        reads, makes = _files_of(part, sizes)
        tasks.append(TaskEntry(part, task, part.texts("parents"), part.texts("children"), reads, makes))
        runs[task] = part
        names.setdefault(name, task)
    called = {**names, **_ids_by_name(tasks)}
    layout = TraceLayout(workflow.parts, tasks, called, runs, sizes, timed=False)
    layout.makespan_s = workflow.number("makespanInSeconds", least=0, most=BYTES_MAX)
    layout.machines, layout.machine_cores = _machines(workflow)
    return layout


def _machines(part: JsonValue) -> tuple[int, int]:
    """How many machines there were, and how many cores they had together; one that does not say has one."""
    machines = part.items("machines")
    return len(machines), sum(_machine_cores(each.value) for each in machines)


def _machine_cores(machine: object) -> int:
    cpu = machine.get("cpu") if isinstance(machine, dict) else None
    said = [cpu.get(key) for key in ("coreCount", "count")] if isinstance(cpu, dict) else []
    return next((count for count in said if isinstance(count, int) and count > 0), 1)


def _files_of(task: JsonValue, sizes: dict[str, int]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What the task reads and what it makes. A file has the size that was said first."""
    found: dict[str, dict[str, None]] = {"input": {}, "output": {}}
    for part in _maps(task, "files", ""):
        name = part.text("path") + part.text("name" if part.has("name") else "id", needed="each file has a name")
        size = int(part.number("sizeInBytes", least=0, most=BYTES_MAX))
        sizes.setdefault(name, size)
        link = part.text("link", needed="say whether the file is an input or an output").lower()
        if link in found:
            found[link][name] = None
        elif link:
            part.at("link").problem(
                f"{link!r:.40} is not known; a file is `input` or `output`", nearest_word(link, found)
            )
    return tuple(found["input"]), tuple(found["output"])


def _ids_by_name(tasks: Iterable[TaskEntry]) -> dict[str, str]:
    called: dict[str, str] = {}
    for entry in tasks:
        if entry.id in called:
            entry.problem(f"two tasks have the id {entry.id!r:.100}; give each its own")
        called[entry.id] = entry.id
    return called


def _maps(part: JsonValue, key: str, needed: str) -> list[JsonValue]:
    found = part.items(key, needed=needed)
    if needed and not found and isinstance(part.at(key).value, list):
        part.at(key).problem("the list is empty; a trace has at least one task")
    return [each for each in found if each.is_map("a map is wanted here")]
