"""`shell(...)`: commands as jobs of a flow in Python."""

from collections.abc import Mapping
from typing import Any, Unpack

from mendflow.core.model.flow import JobActivity
from mendflow.core.model.shells import shell_flaw
from mendflow.formats.python.builder import FlowBuilder, current_builder
from mendflow.formats.python.containers import container_of
from mendflow.formats.python.handles import Handle, template_of
from mendflow.formats.python.loops import loop_over
from mendflow.formats.python.options import KNOWN, JobOptions, check_options, paths_by_name
from mendflow.formats.python.placeholders import Placeholders, filled_command
from mendflow.formats.python.problems import bad_flow, collect


class ShellSteps:
    """`shell("wc -l a.txt")` is one job, `shell.map("wc -l {item}", files)` one for each element."""

    def __call__(self, command: str, **options: Unpack[JobOptions]) -> Any:
        """A shell job. Lines `key=value` that it writes to $MENDFLOW_OUTPUT are its result, a dict. It runs under
        `bash -euo pipefail` unless `shell=` says otherwise."""
        building = demand_builder()
        known, problems = check_options(options)
        collect(problems)
        return building.with_problems_collected("shell", lambda: once(building, command, known))

    def map(self, command: str, *lists: Any, **named: Any) -> Any:
        """A shell job for each element of a list, which is `{item}` in the command, or of lists that go side by side
        and are given by the names of their elements: shell.map("cmp {a} {b}", a=xs, b=ys). Each is one word there,
        whatever is in it. The other options are those of shell(...)."""
        return self._each(command, lists, named, is_zip=True)

    def product(self, command: str, *lists: Any, **named: Any) -> Any:
        """A shell job for each combination of the elements of lists: shell.product("sim {x} {y}", x=xs, y=ys)."""
        return self._each(command, lists, named, is_zip=False)

    def _each(self, command: str, lists: tuple[Any, ...], named: Mapping[str, Any], *, is_zip: bool) -> Any:
        building = demand_builder()
        given = {name: value for name, value in named.items() if name in KNOWN}
        over = {name: value for name, value in named.items() if name not in KNOWN}
        known, _ = check_options(given)

        def make() -> Handle:
            if len(lists) > 1 or (lists and over):
                raise bad_flow('several lists have names here: shell.map("cmp {a} {b}", a=xs, b=ys)')
            return each(building, command, known, {"item": lists[0]} if lists else over, is_zip=is_zip)

        return building.with_problems_collected("shell", make)


shell = ShellSteps()


def once(building: FlowBuilder, command: Any, options: JobOptions) -> Handle:
    return building.job("shell", options, work_of(building, command, options))


def each(building: FlowBuilder, command: Any, options: JobOptions, over: Mapping[str, Any], *, is_zip: bool) -> Handle:
    if not over:
        raise bad_flow('give a list to go over: shell.map("wc -l {item}", xs)')
    loop = loop_over(over, building, building.folder, is_zip=is_zip)
    work = work_of(building, command, options)
    places = Placeholders(loop.elements)
    work["command"] = filled_command(work["command"], places, work["shell"])
    parts = filled_options(options, places)
    places.demand_use(command)
    filled: JobOptions = {**options, **parts}
    fields = building.job_fields(filled, {**work, "inputs": places.staged})
    return building.each("shell", filled, lambda name, label: JobActivity(name=name, label=label, **fields), loop)


def filled_options(options: JobOptions, places: Placeholders) -> JobOptions:
    """Paths and variables of the environment with the elements in them. A file that has no name of its own keeps what
    was written as its name."""
    found: JobOptions = {}
    if "files" in options:
        files = paths_by_name(options["files"], "files")
        found["files"] = {name: places.text(path) if isinstance(path, str) else path for name, path in files.items()}
    if "inputs" in options:
        inputs = paths_by_name(options["inputs"], "inputs")
        found["inputs"] = {places.text(str(path)): places.source(source) for path, source in inputs.items()}
    if "env" in options:
        env = options["env"]
        found["env"] = {name: places.text(value) if isinstance(value, str) else value for name, value in env.items()}
    return found


def work_of(building: FlowBuilder, command: Any, options: JobOptions) -> dict[str, Any]:
    """The command of a job, and what runs it."""
    if not isinstance(command, (str, Handle)) or (isinstance(command, str) and not command.strip()):
        instead = "; a list of words is one text: shlex.join(words)" if isinstance(command, (list, tuple)) else ""
        raise bad_flow(f"a command is a text, not {command!r:.200}{instead}")
    chosen = options.get("shell", building.defaults.get("shell", building.shell))
    check_shell(chosen)
    given = options.get("container", building.defaults.get("container"))
    return {
        "command": template_of(command, building, "the command"),
        "shell": chosen,
        "container": container_of(given, building),
    }


def check_shell(shell: object) -> None:
    if not isinstance(shell, str):
        raise bad_flow(f"shell is a text such as 'bash' or 'Rscript {{0}}', not {shell!r}")
    if flaw := shell_flaw(shell):
        raise bad_flow(f"shell: {flaw}")


def demand_builder() -> FlowBuilder:
    building = current_builder.get()
    if building is None:
        raise bad_flow("shell(...) is for the body of a flow; anywhere else use subprocess.run")
    return building
