"""The environment that jobs are given may hold secrets. Whoever may only read sees the names of its variables, and
whoever may start cases the values too."""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from mendflow.core.model.flow import Flow
from mendflow.core.model.jobs import Job
from mendflow.core.model.views import FlowView
from mendflow.core.recovery.redaction import REDACTED
from mendflow.operations.roles import ADMIN, USER
from mendflow.server.access import Principal


def without_env_values(answer: Any, caller: Principal) -> Any:
    """The answer as the caller may see it."""
    hide = _HIDES.get(type(answer))
    return answer if hide is None or not caller.roles.isdisjoint({ADMIN, USER}) else hide(answer)


def _of_job(job: Job) -> Job:
    spec = msgspec.structs.replace(job.spec, env=dict.fromkeys(job.spec.env, REDACTED))
    return msgspec.structs.replace(job, spec=spec)


def _of_flow(flow: Flow) -> Flow:
    return msgspec.convert(_hidden_in(msgspec.to_builtins(flow)), Flow)


def _of_view(view: FlowView) -> FlowView:
    return view if view.flow is None else msgspec.structs.replace(view, flow=_of_flow(view.flow))


def _hidden_in(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_hidden_in(each) for each in value]
    if not isinstance(value, dict):
        return value
    inside = {name: _hidden_in(each) for name, each in value.items()}
    if value.get("kind") == "job" and isinstance(env := value.get("env"), dict):
        inside["env"] = dict.fromkeys(env, REDACTED)
    return inside


_HIDES: Final[dict[type, Callable[[Any], Any]]] = {Job: _of_job, Flow: _of_flow, FlowView: _of_view}
