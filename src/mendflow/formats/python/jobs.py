"""`@job`: a function that is a job in a flow.

It is still that function. Called outside the body of a flow that is being built, it runs normally; called there, it
becomes a job and returns a handle."""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar, Unpack, overload

from mendflow.core.model.containers import NO_CONTAINER
from mendflow.core.model.errors import Problem
from mendflow.core.model.flow import JobActivity
from mendflow.formats.python.annotations import file_parameters
from mendflow.formats.python.builder import FlowBuilder
from mendflow.formats.python.file_arguments import as_paths, file_argument
from mendflow.formats.python.handles import Handle, template_of
from mendflow.formats.python.loops import Loop
from mendflow.formats.python.options import JobOptions, check_options
from mendflow.formats.python.problems import bad_flow, collect
from mendflow.formats.python.sources import function_ref
from mendflow.formats.python.steps import StepFunction

P = ParamSpec("P")
R = TypeVar("R")


class JobFunction(StepFunction[P, R]):
    """A function that is a job in a flow. There, its arguments and its result are plain data, or files."""

    def __init__(self, function: Callable[P, R], options: JobOptions, problems: Sequence[Problem] = ()) -> None:
        functools.update_wrapper(self, function)
        self.problems = list(problems)  # reported again by every flow that uses it
        self.name = function.__name__
        if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
            told = f"the job `{self.name}` is a generator or async; a job returns plain data"
            self.problems += bad_flow(told).problems
        collect(self.problems)
        self.function = function
        self._options: JobOptions = options
        self._files = file_parameters(function)

    def options(self, **options: Unpack[JobOptions]) -> "JobFunction[P, R]":
        """The same job with other options."""
        return JobFunction(self.function, *check_options({**self._options, **options}))

    def _plainly(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function itself, in a job of a pilot or anywhere else. Texts are taken as paths where it wants
        these."""
        if self._options.get("when") is False:
            return None
        if not self._files:
            return self.function(*args, **kwargs)
        bound = self._signature().bind(*args, **kwargs)
        for name in bound.arguments.keys() & self._files.keys():
            bound.arguments[name] = as_paths(bound.arguments[name], self._files[name])
        return self.function(*bound.args, **bound.kwargs)

    def _once(self, building: FlowBuilder, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Handle:
        collect(self.problems)
        return building.job(self.name, self._options, self._work(building, args, kwargs))

    def _for_each(
        self,
        building: FlowBuilder,
        options: Mapping[str, Any],
        loop: Loop,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> Handle:
        collect(self.problems)
        known, _ = check_options(options)
        fields = building.job_fields(known, self._work(building, args, kwargs))
        return building.each(self.name, known, lambda name, label: JobActivity(name=name, label=label, **fields), loop)

    def _work(self, building: FlowBuilder, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        bound = self._bound(args, kwargs)
        positions = list(bound)[: len(args)]
        inputs: dict[str, Any] = {}

        def given(parameter: str, value: Any, what: str) -> Any:
            brought = file_argument(parameter, value, self._files.get(parameter, ""), building, building.folder)
            if brought is None:
                return template_of(value, building, what)
            inputs.update(brought.inputs)
            return brought.argument

        names = [*positions, *([positions[-1]] * (len(args) - len(positions)) if positions else [])]
        return {
            "function": function_ref(self.function),
            "args": tuple(
                given(name, value, f"argument {number} of {self.name}")
                for number, (name, value) in enumerate(zip(names, args, strict=True), 1)
            ),
            "kwargs": {key: given(key, value, f"{self.name}({key}=...)") for key, value in kwargs.items()},
            "inputs": inputs,
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
    if options.get("container") not in (None, NO_CONTAINER):
        problems += bad_flow("a container is for shell(...); a function runs in the pilot's own Python").problems
    if function is not None and not inspect.isroutine(function):
        raise bad_flow(f"@job makes a function a job, and {function!r:.80} is none; a command is shell(...)")
    if function is not None:
        return JobFunction(function, known, problems)
    return lambda given: JobFunction(given, known, problems)
