"""`@flow`: a function whose calls of jobs make a flow.

It is called once, to build the flow, with handles as its inputs. Called outside the body of a flow that is being built,
it runs normally."""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar, Unpack, overload

from mendflow.core.model.errors import BadFlow, Problem
from mendflow.core.model.flow import FILE, FILES, TABLE, Call, Flow, Input, UnhandledPolicy
from mendflow.core.model.ids import FlowName
from mendflow.formats.links import parallel_with_links
from mendflow.formats.python.annotations import annotations_of, file_parameters, type_of
from mendflow.formats.python.builder import FlowBuilder, current_builder
from mendflow.formats.python.file_arguments import as_paths, matching, value_text
from mendflow.formats.python.handles import Handle, Holds, template_of
from mendflow.formats.python.hints import option_error
from mendflow.formats.python.loops import Loop
from mendflow.formats.python.options import (
    KNOWN,
    KNOWN_OF_CALLS,
    OWN,
    CallOptions,
    JobOptions,
    check_options,
    domain_of,
)
from mendflow.formats.python.problems import bad_flow, bad_function, collect, problem_list
from mendflow.formats.python.shell_jobs import check_shell
from mendflow.formats.python.steps import StepFunction
from mendflow.formats.python.tables import Table, TableHandle
from mendflow.lazy import LazyModule

if TYPE_CHECKING:
    from mendflow.formats.python import triggers
else:
    triggers = LazyModule("mendflow.formats.python.triggers")  # a function that runs as a job needs no YAML

runs: Any = LazyModule("mendflow.scripts.runner")
"""What runs flows from scripts stands on the whole of mendflow, and is loaded when a script runs one."""

P = ParamSpec("P")
R = TypeVar("R")
FLOW_OPTIONS = frozenset({"name", "on_failure", "on_unhandled", "env", "shell", "container", "defaults", "on"})


class FlowFunction(StepFunction[P, R]):
    """A function whose calls of jobs make a flow. Its parameters are the flow's inputs."""

    def __init__(
        self,
        function: Callable[P, R],
        name: str,
        on_failure: Literal["finish", "stop"],
        env: Mapping[str, str],
        on_unhandled: UnhandledPolicy = "",
        shell: str = "",
        defaults: Mapping[str, Any] | None = None,
        problems: Sequence[Problem] = (),
        on: Mapping[str, Any] | None = None,
    ) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.name = name or function.__name__
        self._on = on
        self._options: CallOptions = {}
        self._on_failure = on_failure
        self._env = env
        self._shell = shell
        self._defaults = dict(defaults or {})
        self._on_unhandled: UnhandledPolicy = on_unhandled
        self._problems = list(problems)
        self._built: Flow | None = None
        self._is_building = False
        self._gives_map = False

    def options(self, **options: Unpack[CallOptions]) -> "CalledFlow[P, R]":
        """The same flow, called with options: name, when, needs, after."""
        return CalledFlow(self, options)

    def _plainly(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function itself. Files are given by their paths; patterns are those beside the flow."""
        bound = inspect.signature(self.function).bind(*args, **kwargs)
        bound.apply_defaults()
        for name, kind in file_parameters(self.function).items():
            bound.arguments[name] = plain_files(bound.arguments[name], kind, self._folder())
        return self.function(*bound.args, **bound.kwargs)

    def _once(self, building: FlowBuilder, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Handle:
        return self._call(building, self._options, args, kwargs)

    def _call(
        self, building: FlowBuilder, options: Mapping[str, Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Handle:
        flow, fields = self._call_fields(building, args, kwargs)
        fields["domain"] = domain_of(options)
        handle = building.step(self.name, options, lambda name, label: Call(name=name, label=label, **fields))
        return building.part(handle, "result") if list(flow.outputs) == ["result"] else handle

    def _for_each(
        self,
        building: FlowBuilder,
        options: Mapping[str, Any],
        loop: Loop,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> Handle:
        flow, fields = self._call_fields(building, args, kwargs)
        part = "result" if list(flow.outputs) == ["result"] else ""
        fields["domain"] = domain_of(options)
        return building.each(
            self.name, options, lambda name, label: Call(name=name, label=label, **fields), loop, part=part
        )

    def _call_fields(
        self, building: FlowBuilder, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[Flow, dict[str, Any]]:
        inputs = self._bound(args, kwargs)
        flow = self.build()
        building.include(flow)
        return flow, {"flow": flow.name, "inputs": call_inputs(inputs, building, self.name)}

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

    def run(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the flow from a script or a notebook, show its progress there, and return its result. Raises FlowFailed
        when it fails."""
        outcome = runs.default_runner().submit(self, *args, **kwargs).outcome()
        if outcome.error is not None:
            raise outcome.error
        found: R = outcome.value
        return found

    def submit(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """Start the flow, and return a FlowRun at once: `.wait()`, `.result()`, `.cancel()`, `.why()`."""
        return runs.default_runner().submit(self, *args, **kwargs)

    @property
    def gives_map(self) -> bool:
        """Whether its function returns a dict, which is then the outputs; else its result is the output `result`."""
        self.build()
        return self._gives_map

    def _folder(self) -> Path:
        return Path(inspect.getsourcefile(self.function) or ".").resolve().parent

    def _build(self) -> Flow:
        try:
            if self._problems:
                raise BadFlow(problems=self._problems)
            check_shell(self._shell)
            inputs = inputs_of(self.function, self._folder())
            building = FlowBuilder(
                self._on_failure, self._env, self._shell, self._folder(), defaults_of(self._defaults)
            )
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
            folder=str(building.folder),
            on_unhandled=self._on_unhandled,
        )
        return built if self._on is None else triggers.with_triggers(built, self._on, self.function)

    def _run(self, building: FlowBuilder, inputs: Mapping[str, Input], problems: list[Problem]) -> Any:
        """The result of the function with handles as its inputs. Its problems are recorded; consequential ones are
        not."""
        building_token, listed_token = current_builder.set(building), problem_list.set(problems)
        try:
            arguments = {name: input_handle(building, name, given) for name, given in inputs.items()}
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
        self._gives_map = isinstance(result, dict)
        outputs = {} if result is None else result if isinstance(result, dict) else {"result": result}
        try:
            template: dict[str, Any] = template_of(outputs, building, f"what {self.name} returns")
        except BadFlow as error:
            raise bad_function(self.function, error) from None
        return template


class CalledFlow(StepFunction[P, R]):
    """A flow with the options that its calls have."""

    def __init__(self, flow: FlowFunction[P, R], options: CallOptions) -> None:
        known, problems = check_options(options, KNOWN_OF_CALLS, "a call of a flow")
        collect(problems)
        self.flow = flow
        self.function = flow.function
        self.name = flow.name
        self._options = known

    def _plainly(self, *args: Any, **kwargs: Any) -> Any:
        return None if self._options.get("when") is False else self.flow._plainly(*args, **kwargs)

    def _once(self, building: FlowBuilder, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Handle:
        return self.flow._call(building, self._options, args, kwargs)

    def _for_each(
        self,
        building: FlowBuilder,
        options: Mapping[str, Any],
        loop: Loop,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> Handle:
        return self.flow._for_each(building, options, loop, args, kwargs)


@overload
def flow(function: Callable[P, R], /) -> FlowFunction[P, R]: ...
@overload
def flow(
    *,
    name: str = "",
    on_failure: Literal["finish", "stop"] = "finish",
    on_unhandled: UnhandledPolicy = "",
    env: Mapping[str, str] | None = None,
    shell: str = "",
    container: str | Mapping[str, Any] | None = None,
    defaults: JobOptions | None = None,
    on: Mapping[str, Any] | None = None,
) -> Callable[[Callable[P, R]], FlowFunction[P, R]]: ...
def flow(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str = "",
    on_failure: Literal["finish", "stop"] = "finish",
    on_unhandled: UnhandledPolicy = "",
    env: Mapping[str, str] | None = None,
    shell: str = "",
    container: str | Mapping[str, Any] | None = None,
    defaults: JobOptions | None = None,
    on: Mapping[str, Any] | None = None,
    **others: Any,
) -> Any:
    """Make a function a flow: `@flow`, or `@flow(name="night", on_failure="stop")`. `shell` is that of its shell
    jobs, `container` the image that they run in, and `defaults` are options of all its jobs. `on` is as in a flow
    file: `on={"files": {"in": "drop:incoming", "match": "*.csv"}}`."""
    if container is not None:
        defaults = {"container": container, **(defaults or {})}
    problems = [problem for each in others for problem in bad_flow(*flow_option_error(each)).problems]
    if function is not None:
        return FlowFunction(function, name, on_failure, env or {}, on_unhandled, shell, defaults, problems, on)
    return lambda given: FlowFunction(given, name, on_failure, env or {}, on_unhandled, shell, defaults, problems, on)


def flow_option_error(option: str) -> tuple[str, str]:
    if option in KNOWN:
        return f"a flow has no option `{option}`; for all its jobs it is defaults={{'{option}': ...}}", ""
    return option_error(option, "a flow", FLOW_OPTIONS)


def defaults_of(given: Mapping[str, Any]) -> JobOptions:
    """Options of all jobs of a flow."""
    known, problems = check_options(given)
    if problems:
        raise BadFlow(problems=problems)
    if own := sorted(OWN & given.keys()):
        raise bad_flow(f"defaults hold for all jobs, and `{own[0]}` is for one")
    return known


def input_handle(building: FlowBuilder, name: str, given: Input) -> Handle:
    if given.type == TABLE:
        return TableHandle(building, f"inputs.{name}", given)
    holds: Holds = "file" if given.type == FILE else "files" if given.type == FILES else ""
    return Handle(building, f"inputs.{name}", holds=holds)


def call_inputs(inputs: Mapping[str, Any], building: FlowBuilder, name: str) -> dict[str, Any]:
    for key, value in inputs.items():
        if isinstance(value, Path) or (isinstance(value, (list, tuple)) and any(isinstance(e, Path) for e in value)):
            raise bad_flow(f"{name}({key}=...): a file for another flow is an input of this one, or a file of a job")
    found: dict[str, Any] = template_of(inputs, building, f"the inputs of {name}")
    return found


def inputs_of(function: Callable[..., Any], folder: Path) -> dict[str, Input]:
    """The function's parameters as inputs; those without a default are required. `folder` is the flow's."""
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        raise bad_flow(f"the flow `{function.__name__}` is a generator or async; write a plain function")
    found = {}
    annotations = annotations_of(function)
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise bad_flow(f"the flow {function.__name__} takes its inputs by name; `{parameter}` cannot be one")
        if isinstance(parameter.default, Table):
            found[name] = parameter.default.as_input(folder)
            continue
        required = parameter.default is parameter.empty
        given_type = type_of(annotations.get(name, parameter.annotation))
        default = None if required else default_of(parameter.default, name)
        if isinstance(parameter.default, Path) and given_type not in (FILE, FILES):
            given_type = FILE
        found[name] = Input(type=given_type, required=required, default=default)
    return found


def default_of(given: Any, name: str) -> Any:
    """The default of an input; of a file it is its path beside the flow."""
    if isinstance(given, Path):
        return value_text(given)
    if isinstance(given, (list, tuple)) and any(isinstance(each, Path) for each in given):
        return [value_text(each) if isinstance(each, Path) else each for each in given]
    return template_of(given, None, f"the default of `{name}`")


def plain_files(given: Any, kind: str, folder: Path) -> Any:
    """What a flow that is called as a plain function gets for files: paths, those of a pattern in order."""
    if kind != FILES or given is None:
        return as_paths(given, kind)
    texts = [value_text(each) for each in (given if isinstance(given, (list, tuple)) else [given])]
    return [folder / path for text in texts for path in (matching(text, folder) if "*" in text else [text])]
