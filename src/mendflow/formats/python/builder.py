"""A flow while its function runs: its jobs so far, and their dependencies.

Nothing is executed: each call of a job adds an activity and returns a handle. Handles in a job's arguments are its
dependencies."""

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Literal

from mendflow.core.expressions import ExpressionError, problem, references
from mendflow.core.model.errors import BadFlow
from mendflow.core.model.expr import Expr
from mendflow.core.model.flow import Activity, Call, Flow, ForEach, JobActivity
from mendflow.core.model.values import Value
from mendflow.formats.links import JobNeeds
from mendflow.formats.loops import iteration_files, iteration_outputs
from mendflow.formats.names import NAME
from mendflow.formats.python.handles import Handle, condition_of, template_of
from mendflow.formats.python.options import JobOptions, job_fields, whole_number
from mendflow.formats.python.problems import bad_flow, collect
from mendflow.formats.spelling import nearest_word

current_builder: ContextVar["FlowBuilder | None"] = ContextVar("current_builder", default=None)


class FlowBuilder:
    def __init__(
        self,
        on_failure: Literal["finish", "stop"],
        env: Mapping[str, str],
        shell: str = "",
        folder: Path = Path(),
    ) -> None:
        """`folder` is where files beside the flow are looked for."""
        self.jobs: dict[str, JobNeeds] = {}
        self.calls: dict[str, Flow] = {}
        self.on_failure = on_failure
        self.env = dict(env)
        self.shell = shell
        self.folder = folder
        self._called: dict[str, int] = {}

    def job(self, called: str, options: JobOptions, work: dict[str, Any]) -> Handle:
        """One job; `work` is its command or its function with arguments."""
        name = self.free_name(called, options)
        fields = self.fields(options)
        job = JobActivity(name=name, when=self.when(options), **work, **fields)
        return self.add(job, options, job, job.when)

    def as_far_as_it_goes(self, called: str, make: Callable[[], Handle]) -> Handle:
        """The result, or a placeholder after an error, so that the rest can be read as well."""
        try:
            return make()
        except BadFlow as error:
            collect(error.problems)
            stand_in = JobActivity(name=self.free_name(called, {}), command="")
            return self.add(stand_in, {})

    def each(self, called: str, options: JobOptions, work: dict[str, Any], items: Value) -> Handle:
        """One job per element; the handle stands for the list of results."""
        name = self.free_name(called, options)
        turn = JobActivity(name=f"{name}.iteration", label=name, **work, **self.fields(options))
        loop = ForEach(
            name=name,
            body=turn,
            items=items,
            when=self.when(options),
            max_parallel=whole_number(options, "max_parallel"),
            on_fault=options.get("on_failure", self.on_failure),
            collect=iteration_outputs(turn),
            collect_files=iteration_files(turn),
        )
        return self.add(loop, options, turn, loop.items, loop.when)

    def call(self, flow: Flow, inputs: dict[str, Any]) -> Handle:
        known = self.calls.setdefault(flow.name, flow)
        if known != flow:
            raise bad_flow(f"two different flows are named `{flow.name}`; rename one")
        name = self.free_name(flow.name, {})
        call = Call(name=name, flow=flow.name, inputs=template_of(inputs, self, f"the inputs of {flow.name}"))
        handle = self.add(call, {}, call.inputs)
        return handle["result"] if list(flow.outputs) == ["result"] else handle

    def fields(self, options: JobOptions) -> dict[str, Any]:
        fields = job_fields(options, self, self.folder)
        fields["env"] = {**self.env, **fields["env"]}
        return fields

    def when(self, options: JobOptions) -> Expr | None:
        if "when" not in options:
            return None
        condition = condition_of(options["when"], self)
        if wrong := problem(condition):
            raise bad_flow(f"when `{condition.text}`: {wrong}")
        return condition

    def free_name(self, called: str, options: JobOptions) -> str:
        given = options.get("name", "")
        if given:
            if not isinstance(given, str) or not NAME.fullmatch(given):
                raise bad_flow(f"{given!r} is not a name for a job: use letters, digits, _ and -")
            if given in self.jobs:
                raise bad_flow(f"two jobs of the flow are named `{given}`")
            return given
        name = called
        while name in self.jobs:
            self._called[called] = count = self._called.get(called, 1) + 1
            name = f"{called}-{count}"
        return name

    def add(self, activity: Activity, options: JobOptions, *asking: Any) -> Handle:
        """Add the activity; it depends on everything that it uses."""
        after = tuple(self.named(options.get("after", ())))
        needs = dict.fromkeys(self.named(options.get("needs", ())))
        for name in names_used_by(asking):
            if name.startswith("jobs.") and name[len("jobs.") :] not in self.jobs:
                raise bad_flow(
                    f"`{activity.name}` uses `{name}`, which this flow does not have", nearest_word(name, self.jobs)
                )
            if name.startswith("jobs.") and name[len("jobs.") :] not in after:
                needs.setdefault(name[len("jobs.") :])
        self.jobs[activity.name] = JobNeeds(activity, tuple(needs), tuple(each for each in after if each not in needs))
        path = f"jobs.{activity.name}" if "." not in activity.name else f"jobs.`{activity.name}`"
        return Handle(self, f"{path}.outputs", f"{path}.files")

    def named(self, handles: Any) -> list[str]:
        """The jobs that handles come from."""
        found = []
        for handle in handles if isinstance(handles, (list, tuple)) else [handles]:
            if not isinstance(handle, Handle):
                raise bad_flow(f"needs and after take what jobs gave, not {handle!r}")
            template_of(handle, self, "needs")
            found += [name[len("jobs.") :] for name in references(str(handle)) if name.startswith("jobs.")]
        return found


def names_used_by(value: Any) -> list[str]:
    """All names that the expressions in an activity use, in order."""
    found: list[str] = []
    pending = [value]
    while pending:
        part = pending.pop()
        if isinstance(part, (str, Expr)):
            try:
                found += sorted(references(part))
            except ExpressionError as error:
                text = part.text if isinstance(part, Expr) else part
                raise bad_flow(f"in `{text}`: {error.message}") from None
        elif isinstance(part, Mapping):
            pending.extend((*part.keys(), *part.values()))
        elif isinstance(part, (list, tuple)):
            pending.extend(part)
        elif hasattr(part, "__struct_fields__"):
            pending.extend(getattr(part, field) for field in part.__struct_fields__)
    return found
