"""Closes a flow, so that it depends on nothing of this domain: what lies beside it becomes stored files, what is named
is taken along, and what is sealed for our own servers is opened.

What cannot be closed is refused before anything is sent: a path that only an expression gives means nothing elsewhere,
and the server there says so when it comes to it."""

from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from mendflow.core.engine.plan import walk_activities
from mendflow.core.expressions import is_template
from mendflow.core.model.data import LOGICAL_PREFIX
from mendflow.core.model.errors import InvalidRequest, NotFound
from mendflow.core.model.flow import Call, Flow, JobActivity, Stage
from mendflow.core.model.jobs import FunctionRef, JobSpec
from mendflow.core.model.values import Value
from mendflow.services.cases.flows import Flows
from mendflow.services.cases.staging import FileStaging

FLOWS_MAX: Final = 100


class FlowCloser:
    """`opened` gives texts without seals."""

    def __init__(self, flows: Flows, staging: FileStaging, opened: Callable[[Any], Any]) -> None:
        self._flows = flows
        self._staging = staging
        self._opened = opened

    async def closed(self, flow: Flow, project: str) -> Flow:
        """The flow of a case of this project."""
        flow = await self._closed(self._with_called(flow, project), flow.folder)
        opened: Flow = self._opened(flow)
        return opened

    async def closed_inputs(self, flow: Flow | None, inputs: dict[str, Value], project: str) -> dict[str, Value]:
        """The inputs of a call, with files that they name by their paths as stored ones."""
        if flow is not None:
            inputs = await self._staging.fixed_inputs(flow, inputs, project)
            for name, declared in flow.inputs.items():
                value = inputs.get(name)
                if declared.type == "file" and isinstance(value, str) and self._is_path(value):
                    inputs = {**inputs, name: (await self._staging.stored(value, flow.folder)).as_value()}
        opened: dict[str, Value] = self._opened(inputs)
        return opened

    def _with_called(self, flow: Flow, project: str) -> Flow:
        """The flow together with those that it calls by name and that are deployed here, in its project."""
        taken: dict[str, Flow] = {each.name: each for each in flow.calls}
        pending = [flow]
        while pending:
            for activity in walk_activities(pending.pop()):
                if not isinstance(activity, Call) or not activity.flow or activity.domain or activity.flow in taken:
                    continue
                found = self._flows.of_project(activity.flow, project)
                if found is None:
                    raise NotFound(f"{activity.name} calls the flow {activity.flow!r}, which is not deployed here")
                taken[activity.flow] = found.flow
                pending.append(found.flow)
                if len(taken) > FLOWS_MAX:
                    raise InvalidRequest(f"the flow {flow.name} calls more than {FLOWS_MAX} others: too many to send")
        return replace(flow, calls=tuple(taken.values()))

    async def _closed(self, part: Any, folder: str) -> Any:
        """The part with the files that it names by paths stored."""
        if isinstance(part, FunctionRef):
            return closed_function(part)
        if isinstance(part, Flow):
            folder = part.folder
        if type(part) in (list, tuple):
            return type(part)([await self._closed(each, folder) for each in part])
        if isinstance(part, dict):
            return {key: await self._closed(each, folder) for key, each in part.items()}
        if not isinstance(part, msgspec.Struct):
            return part
        changed = {name: await self._closed(getattr(part, name), folder) for name in part.__struct_fields__}
        if isinstance(part, Flow):
            changed |= {"folder": "", "triggers": None}
        if isinstance(part, JobActivity):
            changed["inputs"] = await self._stored(part.inputs, folder)
        elif isinstance(part, Stage):
            changed["files"] = await self._stored(part.files, folder)
        return replace(part, **changed)

    async def _stored(self, sources: dict[str, Value], folder: str) -> dict[str, Value]:
        stored = dict(sources)
        for path, source in sources.items():
            if isinstance(source, str) and self._is_path(source):
                stored[path] = (await self._staging.stored(source, folder)).as_value()
        return stored

    @staticmethod
    def _is_path(source: str) -> bool:
        return (
            bool(source) and not is_template(source) and "://" not in source and not source.startswith(LOGICAL_PREFIX)
        )


def closed_function(function: FunctionRef) -> FunctionRef:
    """A function that is sent: its module goes along, and the modules beside it, if they were bundled when its flow was
    deployed."""
    if function.code is not None and function.modules and function.bundle is None:
        beside = ", ".join(each.rpartition(" ")[2] for each in function.modules[:3])
        raise InvalidRequest(
            f"the function {function.module}:{function.name} imports modules that lie beside its flow ({beside}), and"
            " these were not stored with it, so they cannot be sent to another domain: deploy the flow again with this"
            " version of mendflow"
        )
    return replace(function, folder="")


def closed_job(spec: JobSpec) -> JobSpec:
    """A job that is sent: nothing in it is a path of this machine, and where it is sent to it stays."""
    if spec.domain:
        spec = replace(spec, domain="")
    if spec.function is None:
        return spec
    return replace(spec, function=closed_function(spec.function))
