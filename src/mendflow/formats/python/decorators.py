"""Flows in Python: `@job` on a function, `@flow` on the function that combines jobs.

A decorated function is still that function. Called outside the body of a flow that is being built, it runs normally;
called there, it becomes a job and returns a handle."""

import functools
import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    Literal,
    ParamSpec,
    TypeVar,
    Union,
    Unpack,
    get_args,
    get_origin,
    overload,
)

from mendflow.core.model.errors import BadFlow, Problem
from mendflow.core.model.flow import Flow, Input, OnUnhandled
from mendflow.core.model.ids import FlowName
from mendflow.core.model.shells import shell_flaw
from mendflow.formats.links import parallel_with_links
from mendflow.formats.python.builder import FlowBuilder, current_builder
from mendflow.formats.python.handles import Handle, template_of
from mendflow.formats.python.options import JobOptions, check_options
from mendflow.formats.python.problems import bad_flow, bad_function, collect, problem_list
from mendflow.formats.python.sources import function_ref
from mendflow.lazy import LazyModule

if TYPE_CHECKING:
    from mendflow.formats.python import triggers
else:
    triggers = LazyModule("mendflow.formats.python.triggers")  # a function that runs as a job needs no YAML

P = ParamSpec("P")
R = TypeVar("R")
TYPES: dict[Any, str] = {
    str: "string",
    int: "number",
    float: "number",
    bool: "boolean",
    list: "list",
    tuple: "list",
    dict: "map",
    Path: "file",
}


class JobFunction(Generic[P, R]):
    """A function that is a job in a flow. There, its arguments and its result are plain data."""

    def __init__(self, function: Callable[P, R], options: JobOptions, problems: Sequence[Problem] = ()) -> None:
        functools.update_wrapper(self, function)
        self.problems = list(problems)  # reported again by every flow that uses it
        if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
            name = function.__name__
            self.problems += bad_flow(f"the job `{name}` is a generator or async; a job returns plain data").problems
        collect(self.problems)
        self.function = function
        self._options = options

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        building = current_builder.get()
        if building is None:
            return self.function(*args, **kwargs)
        name = self.function.__name__
        collect(self.problems)
        handle: Any = building.as_far_as_it_goes(
            name, lambda: building.job(name, self._options, self._work(building, args, kwargs))
        )
        return handle  # type: ignore[no-any-return]  # stands for the result while the flow is being built

    def map(self, items: Any, /, **fixed: Any) -> list[R]:
        """Run once per element of a list, or of a handle for one. The element is the first argument; `fixed` are the
        others. Returns the list of results."""
        building = current_builder.get()
        if building is None:
            return [self.function(item, **fixed) for item in items]
        collect(self.problems)
        handle: Any = building.as_far_as_it_goes(self.function.__name__, lambda: self._each(building, items, fixed))
        return handle  # type: ignore[no-any-return]  # as above

    def _each(self, building: FlowBuilder, items: Any, fixed: Mapping[str, Any]) -> Handle:
        problem_list = template_of(items, building, "what map goes over")
        if not isinstance(problem_list, (list, str)) or (
            isinstance(problem_list, str) and not isinstance(items, Handle)
        ):
            raise bad_flow(f"map goes over a list, or over what a job gave, not over {items!r}")
        work = self._work(building, ("${{ item }}",), fixed)
        return building.each(self.function.__name__, self._options, work, problem_list)

    def options(self, **options: Unpack[JobOptions]) -> "JobFunction[P, R]":
        """The same job with other options."""
        return JobFunction(self.function, *check_options({**self._options, **options}))

    def _work(self, building: FlowBuilder, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        name = self.function.__name__
        try:
            inspect.signature(self.function).bind(*args, **kwargs)
        except TypeError as error:
            raise bad_flow(f"{name}(): {error}") from None
        return {
            "function": function_ref(self.function),
            "args": tuple(template_of(value, building, f"argument {n} of {name}") for n, value in enumerate(args, 1)),
            "kwargs": {key: template_of(value, building, f"{name}({key}=...)") for key, value in kwargs.items()},
        }


@overload
def job(function: Callable[P, R], /) -> JobFunction[P, R]: ...
@overload
def job(**options: Unpack[JobOptions]) -> Callable[[Callable[P, R]], JobFunction[P, R]]: ...
def job(function: Callable[..., Any] | None = None, /, **options: Unpack[JobOptions]) -> Any:
    """Make a function a job: `@job`, or `@job(cpus=2, memory="2 GB", retries=3)`."""
    known, problems = check_options(options)
    if "shell" in options:
        problems += bad_flow("the option `shell` is for shell(...); a function runs in Python").problems
    if function is not None:
        return JobFunction(function, known, problems)
    return lambda given: JobFunction(given, known, problems)


def shell(command: str, **options: Unpack[JobOptions]) -> Any:
    """A shell job. Lines `key=value` that it writes to $MENDFLOW_OUTPUT are its result, a dict. It runs under
    `bash -euo pipefail` unless `shell=` says otherwise."""
    building = current_builder.get()
    if building is None:
        raise bad_flow("shell(...) is for the body of a flow; anywhere else use subprocess.run")
    known, problems = check_options(options)
    collect(problems)
    return building.as_far_as_it_goes("shell", lambda: _shell(building, command, known))


def _shell(building: FlowBuilder, command: str, options: JobOptions) -> Handle:
    if not isinstance(command, str) or not command.strip():
        raise bad_flow(f"a command is a text, not {command!r}")
    chosen = options.get("shell", building.shell)
    check_shell(chosen)
    return building.job("shell", options, {"command": command, "shell": chosen})


def check_shell(shell: object) -> None:
    if not isinstance(shell, str):
        raise bad_flow(f"shell is a text such as 'bash' or 'Rscript {{0}}', not {shell!r}")
    if flaw := shell_flaw(shell):
        raise bad_flow(f"shell: {flaw}")


class FlowFunction(Generic[P, R]):
    """A function whose calls of jobs make a flow. Its parameters are the flow's inputs."""

    def __init__(
        self,
        function: Callable[P, R],
        name: str,
        on_failure: Literal["finish", "stop"],
        env: Mapping[str, str],
        on_unhandled: OnUnhandled = "",
        shell: str = "",
        on: Mapping[str, Any] | None = None,
    ) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.name = name or function.__name__
        self._on = on
        self._on_failure = on_failure
        self._env = env
        self._shell = shell
        self._on_unhandled: OnUnhandled = on_unhandled
        self._built: Flow | None = None
        self._is_building = False

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        building = current_builder.get()
        if building is None:
            return self.function(*args, **kwargs)
        handle: Any = building.as_far_as_it_goes(self.name, lambda: self._called(building, args, kwargs))
        return handle  # type: ignore[no-any-return]  # as above

    def _called(self, building: FlowBuilder, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Handle:
        try:
            inputs = inspect.signature(self.function).bind(*args, **kwargs).arguments
        except TypeError as error:
            raise bad_flow(f"{self.name}(): {error}") from None
        return building.call(self.build(), inputs)

    def build(self) -> Flow:
        """The flow, as the engine takes it. Raises BadFlow."""
        if self._built is None:
            if self._is_building:
                raise bad_flow(f"the flow `{self.name}` calls itself; a flow cannot be part of itself")
            self._is_building = True
            try:
                self._built = self._build()
            finally:
                self._is_building = False
        return self._built

    def _build(self) -> Flow:
        folder = Path(inspect.getsourcefile(self.function) or ".").resolve().parent
        building = FlowBuilder(self._on_failure, self._env, self._shell, folder)
        try:
            check_shell(self._shell)
            inputs = inputs_of(self.function)
        except BadFlow as error:
            raise bad_function(self.function, error) from None
        problems: list[Problem] = []
        result = self._run(building, inputs, problems)
        if problems:
            raise BadFlow(problems=problems)
        if not building.jobs:
            raise bad_function(self.function, bad_flow(f"the flow `{self.name}` has no jobs: its function calls none"))
        built = Flow(
            name=FlowName(self.name),
            body=parallel_with_links(f"{self.name}.jobs", building.jobs, self._on_failure),
            inputs=inputs,
            outputs=self._outputs(building, result),
            description=(inspect.getdoc(self.function) or "").partition("\n")[0],
            calls=tuple(building.calls.values()),
            folder=str(folder),
            on_unhandled=self._on_unhandled,
        )
        return built if self._on is None else triggers.with_triggers(built, self._on, self.function)

    def _run(self, building: FlowBuilder, inputs: Mapping[str, Input], problems: list[Problem]) -> Any:
        """The result of the function with handles as its inputs. Its problems are recorded; consequential ones are
        not."""
        building_token, listed_token = current_builder.set(building), problem_list.set(problems)
        try:
            arguments = {name: Handle(building, f"inputs.{name}") for name in inputs}
            return self.function(**arguments)  # type: ignore[call-arg,arg-type]  # handles stand for the inputs
        except BadFlow as error:
            collect(error.problems)
        except Exception:  # after an error the flow's own code may raise anything; the first error is reported
            if not problems:
                raise
        finally:
            current_builder.reset(building_token)
            problem_list.reset(listed_token)

    def _outputs(self, building: FlowBuilder, result: Any) -> dict[str, Any]:
        """A dict is the outputs; anything else is the output `result`."""
        outputs = {} if result is None else result if isinstance(result, dict) else {"result": result}
        try:
            template: dict[str, Any] = template_of(outputs, building, f"what {self.name} returns")
        except BadFlow as error:
            raise bad_function(self.function, error) from None
        return template


@overload
def flow(function: Callable[P, R], /) -> FlowFunction[P, R]: ...
@overload
def flow(
    *,
    name: str = "",
    on_failure: Literal["finish", "stop"] = "finish",
    on_unhandled: OnUnhandled = "",
    env: Mapping[str, str] | None = None,
    shell: str = "",
    on: Mapping[str, Any] | None = None,
) -> Callable[[Callable[P, R]], FlowFunction[P, R]]: ...
def flow(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str = "",
    on_failure: Literal["finish", "stop"] = "finish",
    on_unhandled: OnUnhandled = "",
    env: Mapping[str, str] | None = None,
    shell: str = "",
    on: Mapping[str, Any] | None = None,
) -> Any:
    """Make a function a flow: `@flow`, or `@flow(name="night", on_failure="stop")`. `shell` is that of its shell
    jobs. `on` is as in a flow file: `on={"files": {"in": "drop:incoming", "match": "*.csv"}}`."""
    if function is not None:
        return FlowFunction(function, name, on_failure, env or {}, on_unhandled, shell, on)
    return lambda given: FlowFunction(given, name, on_failure, env or {}, on_unhandled, shell, on)


def inputs_of(function: Callable[..., Any]) -> dict[str, Input]:
    """The function's parameters as inputs; those without a default are required."""
    found = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise bad_flow(f"the flow {function.__name__} takes its inputs by name; `{parameter}` cannot be one")
        required = parameter.default is parameter.empty
        default = None if required else template_of(parameter.default, None, f"the default of `{name}`")
        found[name] = Input(type=type_of(parameter.annotation), required=required, default=default)
    return found


def type_of(annotation: Any) -> str:
    """The input type for an annotation; empty for any."""
    if isinstance(annotation, str):
        annotation = {kind.__name__: kind for kind in TYPES}.get(annotation.partition("[")[0])
    if get_origin(annotation) in (Union, types.UnionType):
        return next((type_of(each) for each in get_args(annotation) if each is not type(None)), "")
    return TYPES.get(get_origin(annotation) or annotation, "")
