"""`call(...)`: another flow, from a file or by the name that it was deployed under, as a step of a flow in Python."""

import inspect
from collections.abc import Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Unpack

from mendflow.core.model.errors import BadFlow
from mendflow.core.model.flow import FILES, Call, Flow
from mendflow.formats import JOB, PYTHON, YAML, load
from mendflow.formats.python.builder import FlowBuilder, current_builder
from mendflow.formats.python.flows import FlowFunction, call_inputs
from mendflow.formats.python.handles import Handle
from mendflow.formats.python.loops import loop_over, named_lists, split_options
from mendflow.formats.python.options import KNOWN_OF_CALLS, CallOptions, check_options, domain_of
from mendflow.formats.python.problems import bad_flow, collect
from mendflow.formats.spelling import nearest_word

open_files: ContextVar[tuple[Path, ...]] = ContextVar("open_files", default=())
"""The flow files that are being read because a flow in Python calls them, the outermost first."""


class CallSteps:
    """`call("sub.yaml", n=3)` is one call, `call.map("sub.yaml", xs)` one for each element."""

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        known, problems = check_options(options or {}, KNOWN_OF_CALLS, "a call of a flow")
        collect(problems)
        self._options = known

    def options(self, **options: Unpack[CallOptions]) -> "CallSteps":
        """A call with options: `call.options(when=n > 3, name="second")("sub.yaml", n=n)`."""
        return CallSteps({**self._options, **options})

    def __call__(self, target: str, /, **inputs: Any) -> Any:
        """Run the flow of a file beside this one, `sub.yaml` or `file.py:flow`, or one that was deployed under that
        name. Its outputs, a dict, are the result."""
        building = demand_builder()

        def make() -> Handle:
            called = CalledFile(building, target)
            fields = {**called.fields(inputs), "domain": domain_of(self._options)}
            return building.step(called.name, self._options, lambda name, label: Call(name=name, label=label, **fields))

        return building.with_problems_collected("call", make)

    def map(self, target: str, /, *lists: Any, **fixed: Any) -> Any:
        """Run it for each element of a list, or of lists side by side. The elements are its first inputs, and what is
        given by name is the same for all."""
        return self._each(target, lists, fixed, is_zip=True)

    def product(self, target: str, /, *lists: Any, **named: Any) -> Any:
        """Run it for each combination of the elements of lists."""
        return self._each(target, lists, named, is_zip=False)

    def _each(self, target: str, lists: tuple[Any, ...], named: Mapping[str, Any], *, is_zip: bool) -> Any:
        building = demand_builder()

        def make() -> Handle:
            called = CalledFile(building, target)
            loop_options, others = split_options(named, called.parameters)
            over, fixed = named_lists(
                f"call.{'map' if is_zip else 'product'}", called.parameters, lists, others, is_zip
            )
            loop = loop_over(over, building, building.folder, is_zip=is_zip)
            options = {**self._options, **loop_options}
            fields = {**called.fields({**fixed, **loop.elements}), "domain": domain_of(options)}
            return building.each(called.name, options, lambda name, label: Call(name=name, label=label, **fields), loop)

        return building.with_problems_collected("call", make)


class CalledFile:
    """A flow that is called: that of a file, which comes along, or a deployed one, of which only the name is known."""

    def __init__(self, building: FlowBuilder, target: Any) -> None:
        if isinstance(target, FlowFunction) or inspect.isroutine(target):
            raise bad_flow("a flow in Python is called as it is: name(...); call(...) is for files and deployed flows")
        if not isinstance(target, str) or not target.strip():
            raise bad_flow(f"call takes the path of a flow file, or the name of a deployed flow, not {target!r:.80}")
        self._building = building
        self._flow = flow_of(building.folder, target) if is_file(target) else None
        self.name = self._flow.name if self._flow is not None else target

    @property
    def parameters(self) -> list[str]:
        return list(self._flow.inputs) if self._flow is not None else []

    def fields(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        if self._flow is not None:
            require_inputs(self._flow, inputs)
            self._building.include(self._flow)
        return {"flow": self.name, "inputs": call_inputs(inputs, self._building, self.name)}


call = CallSteps()


def demand_builder() -> FlowBuilder:
    building = current_builder.get()
    if building is None:
        raise bad_flow("call(...) is for the body of a flow; `mendflow run FILE` runs a flow by itself")
    return building


def is_file(target: str) -> bool:
    return target.partition(".py:")[0].endswith((*YAML, PYTHON, JOB)) or ".py:" in target or "/" in target


def flow_of(folder: Path, target: str) -> Flow:
    """The flow of a file in the folder or below it."""
    file, _, name = target.partition(".py:")
    path = (folder / (f"{file}.py" if name else target)).resolve()
    if not path.is_relative_to(folder):
        raise bad_flow(f"`{target}` leads out of the flow's folder; a called flow must be in it or below")
    if not path.is_file():
        others = (each.name for each in path.parent.iterdir()) if path.parent.is_dir() else ()
        raise bad_flow(f"there is no flow file `{target}`", nearest_word(path.name, others))
    if path in open_files.get():
        circle = " -> ".join(each.name for each in (*open_files.get(), path))
        raise bad_flow(f"these flows call each other in a cycle: {circle}")
    building, opened = current_builder.set(None), open_files.set((*open_files.get(), path))
    try:
        return load(path, name)
    except BadFlow as error:
        told = "; ".join(map(str, error.problems))
        raise bad_flow(f"`{target}` cannot be called: {told}") from None
    finally:
        current_builder.reset(building)
        open_files.reset(opened)


def require_inputs(flow: Flow, given: Mapping[str, Any]) -> None:
    for name in given:
        if name not in flow.inputs:
            raise bad_flow(f"the flow `{flow.name}` has no input `{name}`", nearest_word(name, flow.inputs))
    needed = [name for name, wanted in flow.inputs.items() if wanted.required or wanted.type == FILES]
    if missing := [name for name in needed if name not in given]:
        raise bad_flow(f"the flow `{flow.name}` needs the input `{missing[0]}`")
