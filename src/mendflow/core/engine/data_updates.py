"""The data of items and of the case, as people and rules see it, and updates from outside.

An item's data is in its order: a function's keyword arguments, a command's environment, a task's data, a call's inputs,
the sources of staged files. An update makes another order under the same serial. Whoever carries out a held order later
asks for the current one."""

import re
from typing import Final

from msgspec.structs import replace

from mendflow.core.engine import data
from mendflow.core.engine.faults import FlowFault
from mendflow.core.engine.messages import CallPartner, OfferTask, Order, StageFiles, StartCalledCase, SubmitJob
from mendflow.core.engine.state import Case, Item, JobItem
from mendflow.core.engine.xml.shapes import flaw
from mendflow.core.expressions import RESERVED
from mendflow.core.expressions.text_values import as_text
from mendflow.core.model.errors import RequestError
from mendflow.core.model.ids import ItemId
from mendflow.core.model.values import Value, check_made_value
from mendflow.core.model.xml import XmlType
from mendflow.lazy import lazy_pattern

PATH: Final = lazy_pattern(r"[A-Za-z_][\w-]*(\.[A-Za-z_][\w-]*|\[\d{1,9}\]){0,63}")
VARIABLE: Final = lazy_pattern(r"[A-Za-z_]\w*", re.ASCII)
NO_DATA: Final = "it has no data to write to; write into the case instead"


def order_data(order: Order | None) -> dict[str, Value]:
    """The data of the item with this order."""
    match order:
        case SubmitJob(spec=spec):
            return {**spec.env, **({"args": spec.args} if spec.args else {}), **spec.kwargs}
        case OfferTask(data=given) | CallPartner(value=given):
            if given is None:
                return {}
            return dict(given) if isinstance(given, dict) else {"data": given}
        case StartCalledCase(inputs=inputs):
            return dict(inputs)
        case StageFiles(files=files):
            return dict(files)
    return {}


def update_order(order: Order | None, values: dict[str, Value]) -> Order:
    """The order with these values in its data, or a RequestError."""
    match order:
        case SubmitJob(spec=spec):
            env = {name: value for name, value in values.items() if spec.function is None or name in spec.env}
            kwargs = {name: value for name, value in values.items() if name not in env}
            return replace(
                order, spec=replace(spec, env=_with_env(spec.env, env), kwargs=_with_values(spec.kwargs, kwargs))
            )
        case OfferTask():
            return replace(order, data=_with_values(order.data, values))
        case StartCalledCase():
            return replace(order, inputs=_with_values(order.inputs, values))
        case CallPartner():
            return replace(order, value=_with_values(order.value, values))
        case StageFiles():
            return replace(order, files=with_sources(order.files, values))
    raise RequestError(NO_DATA)


def _with_values(given: Value, values: dict[str, Value]) -> Value:
    if given is not None and not isinstance(given, dict):
        raise RequestError("its data is not a map, so nothing can be written into it by name")
    whole: Value = given or {}
    for path, value in values.items():
        whole = _put(whole, path, value)
    return whole


def with_sources(given: dict[str, str], values: dict[str, Value]) -> dict[str, str]:
    """The staging order with other sources."""
    for name, source in values.items():
        if name not in given:
            raise RequestError(f"it stages no file {name!r:.80}; it has {', '.join(given)}")
        if not isinstance(source, str) or not source or "\0" in source:
            raise RequestError(f"the source of {name} is {source!r:.80}; give a path or a URL")
    return {**given, **values}


def sources_in(item: Item, values: dict[str, Value]) -> dict[str, Value]:
    """The values that are new sources for files that a job's item stages first."""
    if not isinstance(item, JobItem) or not item.sources:
        return {}
    return {path: source for path, source in values.items() if path in item.sources}


def write_item(item: Item, values: dict[str, Value], *, dry: bool = False) -> Order | None:
    """The item's order with these values, or a RequestError if it has no place for them; new sources of a job's files
    go into the item itself. `dry` only validates."""
    sources = sources_in(item, values)
    rest = {name: value for name, value in values.items() if name not in sources}
    order = update_order(item.order, rest) if rest or not sources else item.order
    if sources and isinstance(item, JobItem):
        renewed = with_sources(item.sources, sources)
        if not dry:
            item.sources = renewed
    return order


def write_outputs(outputs: Value, values: dict[str, Value], item: ItemId) -> Value:
    """What an item gave, with these values in it, or a RequestError if it has no place for them."""
    whole: Value = {} if outputs is None else outputs
    if not isinstance(whole, dict):
        raise RequestError(
            f"item {item} gave {outputs!r:.80}, which has no names that could be written; `force-complete` with"
            " `outputs` gives it others",
            item=item,
        )
    for path, value in values.items():
        whole = _put(whole, path, value)
    return whole


def _with_env(given: dict[str, str], values: dict[str, Value]) -> dict[str, str]:
    texts = {name: as_text(value) for name, value in values.items()}
    for name, text in texts.items():
        if not name or "=" in name or "\0" in name or "\0" in text:
            raise RequestError(
                f"{name!r:.80} cannot be the name of an environment variable, or its text has a NUL character"
            )
    return {**given, **texts} if texts else given


def _put(whole: Value, path: str, value: Value) -> Value:
    if not PATH.fullmatch(path):
        raise RequestError(f"{path!r:.80} is not a path into data; write it as `name.member[0]`")
    try:
        whole = data.put_at(whole, data.steps_of(path), value, path)
    except FlowFault as problem:
        raise RequestError(problem.fault.message) from None
    if reason := check_made_value(whole):
        raise RequestError(f"`{path}` cannot be written: {reason}")
    return whole


def updated_case_data(case: Case, values: dict[str, Value]) -> tuple[dict[str, Value], dict[str, Value]]:
    """The case's inputs and its flow's variables with these values, or a RequestError. A new name becomes a
    variable."""
    assert case.flow is not None
    inputs: Value = case.inputs
    variables: Value = data.flow_variables(case)
    declared = case.plan.nodes[case.plan.process].types if case.flow.xml is not None else None
    for path, value in values.items():
        name = re.split(r"[.\[]", path, maxsplit=1)[0]
        if name not in variables and name in case.flow.inputs:
            inputs = _put(inputs, path, value)
        elif declared is not None:
            variables = _updated_declared(case, declared, variables, path, value)
        elif not VARIABLE.fullmatch(name) or name in RESERVED or name == "inputs":
            raise RequestError(
                f"{name!r:.80} cannot be a variable: use letters, digits and _, and no word of expressions"
            )
        else:
            variables = _put(variables, path, value)
    return inputs, variables


def _updated_declared(case: Case, declared: dict[str, XmlType], variables: Value, path: str, value: Value) -> Value:
    """The typed variables of a process, with a value at a path."""
    name = re.split(r"[.\[]", path, maxsplit=1)[0]
    if name not in declared:
        raise RequestError(f"the process has no variable {name!r:.80}; it has {', '.join(declared) or 'none'}")
    variables = _put(variables, path, value)
    assert case.flow is not None and case.flow.xml is not None
    if reason := flaw(case.flow.xml, declared[name], variables[name]):
        raise RequestError(f"`{path:.80}` cannot be written: {reason}")
    return variables


def write_case(case: Case, values: dict[str, Value]) -> None:
    """Write values into the case."""
    inputs, variables = updated_case_data(case, values)
    case.inputs = inputs
    root, env = data.root_env(case), data.variables_env(case)
    if root is not None:
        root.variables["inputs"] = inputs
    if env is None:
        case.variables = variables
        for path, value in values.items():
            case.early_writes.pop(path, None)
            case.early_writes[path] = value
    else:
        env.variables.update(variables)
