"""The environment that jobs are given may hold secrets. Whoever may only read sees the names of its variables, and
whoever may start cases the values too.

Every answer is walked as a whole, so that no type of answer is forgotten. The environment is in jobs and flows, in what
primitives set, and in the data of a failed job: that is in contexts of decisions, in cornerstones of rules, in the
inputs of the cases that mend it, and in what rules have found there.

What a case was given, the defaults of its flow, what a schedule gives and the arguments of functions may hold secrets
too: of these, texts are hidden whose names say so, as in contexts. Whoever starts cases sees them, and so can start one
with the same. So it is of what a user task is about, and of its answer, also for those who claim and end it: what they
send is taken as they send it. The key of a result is a digest of all of that, and would show whether a guess is right:
it is hidden."""

import re
from typing import Any, Final

import msgspec

from mendflow.core.model.comparisons import ValueDifference
from mendflow.core.model.flow import Input, UserTask
from mendflow.core.model.flow_files import FlowFileView
from mendflow.core.model.jobs import Job
from mendflow.core.model.repair_views import FailureView
from mendflow.core.model.views import CaseView, ResultView, UserTaskView
from mendflow.core.recovery.redaction import REDACTED, redact
from mendflow.operations.operation import ApiOperation

ENV: Final = "env"
GIVEN: Final = frozenset({"inputs", "defaults", "args", "kwargs", "arguments"})
_PATH_TO_DATA: Final = re.compile(r"(?<![\w.])data\b|\bitem\.data\b|\bjob\.env\b")
"""In a condition, or by itself. `data` has the item's data over the case's."""


def without_env_values(answer: Any, operation: ApiOperation, *, whole: bool) -> Any:
    """The answer as the caller may see it. What viewers may not ask for, as engines ask for orders, stays whole."""
    if whole or (operation.allowed.project != "viewer" and not isinstance(answer, UserTaskView)):
        return answer
    return _hidden(answer)


def _hidden(value: Any) -> Any:
    """The same object if there is nothing to hide in it."""
    if type(value) in (list, tuple):
        parts = [_hidden(each) for each in value]
        return value if all(map(_same, parts, value)) else type(value)(parts)
    if isinstance(value, dict):
        new = _hidden_fields(value)
        return {**value, **new} if new else value
    if isinstance(value, msgspec.Struct):
        new = _hidden_fields({name: getattr(value, name) for name in value.__struct_fields__}) | _hidden_views(value)
        return msgspec.structs.replace(value, **new) if new else value
    return value


def _same(one: object, other: object) -> bool:
    return one is other


def _hidden_fields(fields: dict[Any, Any]) -> dict[Any, Any]:
    """Those fields that change."""
    new = {name: _hidden_field(name, each) for name, each in fields.items()}
    if fields.get("kind") == "job" and isinstance(data := fields.get("data"), dict):
        new["data"] = _hidden_data(data, fields.get("outputs"))
    if fields.get("kind") == "user-task" and "outputs" in fields:
        new["outputs"] = _without_secrets(new["outputs"])
    for name in GIVEN & fields.keys():
        new[name] = _without_secrets(new[name])
    if isinstance(path := fields.get("path"), str) and _PATH_TO_DATA.search(path):
        new |= _hidden_row(fields)
    if isinstance(conditions := fields.get("conditions"), list):
        new["conditions"] = _shown_conditions(conditions)
    return {name: each for name, each in new.items() if each is not fields[name]}


def _without_secrets(given: Any) -> Any:
    """What was given under which names or one after the other, what flows declare, or what of it differs between two
    cases."""
    if isinstance(given, dict):
        shown = {name: _shown_input(name, each) for name, each in given.items()}
        return shown if shown != given else given
    if type(given) in (list, tuple):
        parts = [_without_secrets(each) for each in given]
        return given if all(map(_same, parts, given)) else type(given)(parts)
    return _shown_difference(given) if isinstance(given, ValueDifference) else given


def _shown_input(name: object, value: Any) -> Any:
    if not isinstance(name, str):
        return value
    if isinstance(value, Input):
        default = _shown_input(name, value.default)
        return msgspec.structs.replace(value, default=default) if default != value.default else value
    return redact({name: value})[name]


def _shown_difference(row: ValueDifference) -> ValueDifference:
    return msgspec.structs.replace(row, left=_shown_input(row.path, row.left), right=_shown_input(row.path, row.right))


def _hidden_row(fields: dict[Any, Any]) -> dict[Any, Any]:
    """What is told of the values at a path: the value with counts, or the two values that differ, or samples."""
    names = ("value",) if "value" in fields else ("here", "there", "samples")
    hidden = {name: fields[name] for name in names if fields.get(name) is not None}
    return {name: [REDACTED] if isinstance(each, list) else REDACTED for name, each in hidden.items()}


def _shown_conditions(conditions: list[Any]) -> list[Any]:
    """Those that do not name a value of the environment; the same list if all may be shown."""
    shown = [each for each in conditions if not (isinstance(each, str) and _PATH_TO_DATA.search(each))]
    return shown if len(shown) < len(conditions) else conditions


def _hidden_field(name: object, value: Any) -> Any:
    if name == ENV and isinstance(value, dict):
        return dict.fromkeys(value, REDACTED)
    if isinstance(name, str) and "." in name and _PATH_TO_DATA.search(name):
        return {REDACTED: sum(value.values())} if _is_counted(value) else REDACTED
    return _hidden(value)


def _is_counted(value: Any) -> bool:
    """Whether these are values of a path, with how often each was found."""
    return isinstance(value, dict) and all(isinstance(each, int) for each in value.values())


def _hidden_data(data: dict[str, Any], outputs: Any) -> dict[str, Any]:
    """The data of a job is its environment, its arguments and its outputs; only of the outputs it is known that they
    are no environment."""
    shown = outputs if isinstance(outputs, dict) else {}
    return {
        name: REDACTED if isinstance(each, str) and name not in shown else _hidden_field(name, each)
        for name, each in data.items()
    }


def _hidden_views(view: msgspec.Struct) -> dict[str, Any]:
    """A flow that mends an item and does not ask for the context gets some of the item's data as its inputs."""
    if isinstance(view, FailureView):
        return {"candidates": [each for each in view.candidates if not _PATH_TO_DATA.search(each.condition)]}
    if isinstance(view, CaseView) and view.mends_item is not None:
        return {"inputs": _hidden_data(view.inputs, {})}
    if isinstance(view, UserTaskView):
        return {name: _without_secrets(_hidden(getattr(view, name))) for name in ("data", "outputs")}
    if isinstance(view, UserTask):
        return {"data": _without_secrets(_hidden(view.data))}
    if isinstance(view, Job | ResultView) and view.key:
        return {"key": REDACTED}
    if isinstance(view, FlowFileView) and view.text:
        return {"text": "", "reason": "its text is for those who may start cases of it: an environment may stand in it"}
    return {}
