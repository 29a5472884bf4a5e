"""The data of items and of the case, as people and rules see it, and how it is changed from outside.

An item's data is what its order says: a function's keyword arguments, a command's environment, a task's data, a call's
inputs, the sources of files that are staged. Writing into it makes another order under the same serial. Whoever carries
orders out late, because something held them, asks for the order as it is then."""

import re
from typing import Final

from msgspec.structs import replace

from mendflow.core.engine import data
from mendflow.core.engine.faults import Thrown
from mendflow.core.engine.messages import CallPartner, OfferTask, Order, StageFiles, StartCalled, SubmitJob
from mendflow.core.engine.state import Case, Item, JobItem
from mendflow.core.engine.xml.shapes import flaw
from mendflow.core.expressions import RESERVED
from mendflow.core.expressions.texts import as_text
from mendflow.core.model.problems import Mistake
from mendflow.core.model.values import Value, check_value
from mendflow.core.model.xml import XmlType

PATH: Final = re.compile(r"[A-Za-z_][\w-]*(\.[A-Za-z_][\w-]*|\[\d{1,9}\]){0,63}")
VARIABLE: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)
NO_DATA: Final = "it has no data to write to; write into the case instead"


def order_data(order: Order | None) -> dict[str, Value]:
    """The data of the item that gave this order."""
    match order:
        case SubmitJob(spec=spec):
            return {**spec.env, **({"args": spec.args} if spec.args else {}), **spec.kwargs}
        case OfferTask(data=given) | CallPartner(value=given):
            if given is None:
                return {}
            return dict(given) if isinstance(given, dict) else {"data": given}
        case StartCalled(inputs=inputs):
            return dict(inputs)
        case StageFiles(files=files):
            return dict(files)
    return {}


def rewritten(order: Order | None, values: dict[str, Value]) -> Order:
    """The order with these values in its data, or a Mistake."""
    match order:
        case SubmitJob(spec=spec):
            env = {name: value for name, value in values.items() if spec.function is None or name in spec.env}
            kwargs = {name: value for name, value in values.items() if name not in env}
            return replace(order, spec=replace(spec, env=_with_env(spec.env, env), kwargs=_with(spec.kwargs, kwargs)))
        case OfferTask():
            return replace(order, data=_with(order.data, values))
        case StartCalled():
            return replace(order, inputs=_with(order.inputs, values))
        case CallPartner():
            return replace(order, value=_with(order.value, values))
        case StageFiles():
            return replace(order, files=with_sources(order.files, values))
    raise Mistake(NO_DATA)


def _with(given: Value, values: dict[str, Value]) -> Value:
    if given is not None and not isinstance(given, dict):
        raise Mistake("its data is not a map, so nothing can be written into it by name")
    whole: Value = given or {}
    for path, value in values.items():
        whole = _put(whole, path, value)
    return whole


def with_sources(given: dict[str, str], values: dict[str, Value]) -> dict[str, str]:
    """Files that are to be staged, from other sources."""
    for name, source in values.items():
        if name not in given:
            raise Mistake(f"it stages no file {name!r:.80}; it has {', '.join(given)}")
        if not isinstance(source, str) or not source or "\0" in source:
            raise Mistake(f"the source of {name} is {source!r:.80}; give a path or a URL")
    return {**given, **values}


def sources_in(item: Item, values: dict[str, Value]) -> dict[str, Value]:
    """Those values that are other sources for files which a job's item stages first."""
    if not isinstance(item, JobItem) or not item.sources:
        return {}
    return {path: source for path, source in values.items() if path in item.sources}


def write_item(item: Item, values: dict[str, Value], *, dry: bool = False) -> Order | None:
    """The item's order with these values, or a Mistake if it has no place for them; other sources of a job's files go
    into the item itself. `dry` only looks."""
    sources = sources_in(item, values)
    rest = {name: value for name, value in values.items() if name not in sources}
    order = rewritten(item.order, rest) if rest or not sources else item.order
    if sources and isinstance(item, JobItem):
        renewed = with_sources(item.sources, sources)
        if not dry:
            item.sources = renewed
    return order


def _with_env(given: dict[str, str], values: dict[str, Value]) -> dict[str, str]:
    texts = {name: as_text(value) for name, value in values.items()}
    for name, text in texts.items():
        if not name or "=" in name or "\0" in name or "\0" in text:
            raise Mistake(
                f"{name!r:.80} cannot be the name of an environment variable, or its text has a NUL character"
            )
    return {**given, **texts} if texts else given


def _put(whole: Value, path: str, value: Value) -> Value:
    if not PATH.fullmatch(path):
        raise Mistake(f"{path!r:.80} is not a path into data; write it as `name.member[0]`")
    try:
        whole = data.put(whole, data.steps_of(path), value, path)
    except Thrown as problem:
        raise Mistake(problem.fault.message) from None
    if reason := check_value(whole):
        raise Mistake(f"`{path}` cannot be written: {reason}")
    return whole


def case_with(case: Case, values: dict[str, Value]) -> tuple[dict[str, Value], dict[str, Value]]:
    """The inputs of the case and the variables of its flow with these values, or a Mistake. What is neither yet
    becomes a variable."""
    assert case.flow is not None
    inputs: Value = case.inputs
    variables: Value = data.flow_variables(case)
    declared = case.plan.nodes[case.plan.process].types if case.flow.xml is not None else None
    for path, value in values.items():
        name = re.split(r"[.\[]", path, maxsplit=1)[0]
        if name not in variables and name in case.flow.inputs:
            inputs = _put(inputs, path, value)
        elif declared is not None:
            variables = _declared_with(case, declared, variables, path, value)
        elif not VARIABLE.fullmatch(name) or name in RESERVED or name == "inputs":
            raise Mistake(f"{name!r:.80} cannot be a variable: use letters, digits and _, and no word of expressions")
        else:
            variables = _put(variables, path, value)
    return inputs, variables


def _declared_with(case: Case, declared: dict[str, XmlType], variables: Value, path: str, value: Value) -> Value:
    """The variables of a process, each of which has a type, with a value at a path."""
    name = re.split(r"[.\[]", path, maxsplit=1)[0]
    if name not in declared:
        raise Mistake(f"the process has no variable {name!r:.80}; it has {', '.join(declared) or 'none'}")
    variables = _put(variables, path, value)
    assert case.flow is not None and case.flow.xml is not None
    if reason := flaw(case.flow.xml, declared[name], variables[name]):
        raise Mistake(f"`{path:.80}` cannot be written: {reason}")
    return variables


def write_case(case: Case, values: dict[str, Value]) -> None:
    """Put values into the case."""
    inputs, variables = case_with(case, values)
    case.inputs = inputs
    root, env = data.root_env(case), data.variables_env(case)
    if root is not None:
        root.variables["inputs"] = inputs
    if env is None:
        case.variables = variables
        for path, value in values.items():
            case.early.pop(path, None)
            case.early[path] = value
    else:
        env.variables.update(variables)
