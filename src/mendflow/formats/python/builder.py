"""A flow while its function runs: its jobs so far, and their dependencies.

Nothing is executed: each call of a job adds an activity and returns a handle. Handles in a job's arguments are its
dependencies."""

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Literal

from msgspec.structs import replace

from mendflow.core.engine.result_checks import input_flaw
from mendflow.core.expressions import ExpressionError, references
from mendflow.core.expressions.scanner import ENDS
from mendflow.core.model.containers import NO_CONTAINER
from mendflow.core.model.errors import BadFlow
from mendflow.core.model.expr import Expr
from mendflow.core.model.flow import Activity, Flow, ForEach, JobActivity
from mendflow.formats.links import JobNeeds, runs_without
from mendflow.formats.loops import iteration_files, iteration_outputs
from mendflow.formats.names import NAME
from mendflow.formats.python.conditions import condition_of
from mendflow.formats.python.handles import Handle, JobResult, template_of
from mendflow.formats.python.loops import Loop, tolerance
from mendflow.formats.python.options import JobOptions, choice, job_fields, limit_amounts, secret_uses, whole_number
from mendflow.formats.python.problems import bad_flow, collect
from mendflow.formats.secret_uses import joined
from mendflow.formats.spelling import nearest_word

current_builder: ContextVar["FlowBuilder | None"] = ContextVar("current_builder", default=None)
Maker = Callable[[str, str], Activity]
"""Makes an activity with a name, and a label that people see instead; it is empty if they see the name."""

ON_FAILURE = ["finish", "stop"]


class FlowBuilder:
    def __init__(
        self,
        on_failure: Literal["finish", "stop"],
        env: Mapping[str, str],
        shell: str = "",
        folder: Path = Path(),
        defaults: JobOptions | None = None,
    ) -> None:
        """`folder` is where files beside the flow are looked for; `defaults` are options of all jobs."""
        self.jobs: dict[str, JobNeeds] = {}
        self.calls: dict[str, Flow] = {}
        self.on_failure = on_failure
        self.env = dict(env)
        self.shell = shell
        self.folder = folder
        self.defaults: JobOptions = defaults or {}
        self._called: dict[str, int] = {}
        self._results: dict[str, str] = {}
        self._activities: dict[str, Activity] = {}
        self._places: dict[str, int] = {}  # which job is the first, the second...

    def job(self, called: str, options: JobOptions, work: dict[str, Any]) -> Handle:
        """One job; `work` is its command or its function with arguments."""
        fields = self.job_fields(options, work)
        return self.step(called, options, lambda name, label: JobActivity(name=name, label=label, **fields))

    def with_problems_collected(self, called: str, make: Callable[[], Handle]) -> Handle:
        """The result, or a placeholder after an error, so that the rest can be read as well."""
        try:
            return make()
        except BadFlow as error:
            collect(error.problems)
            stand_in = JobActivity(name=self.free_name(called, {}), command="")
            return self.add(stand_in, {})

    def step(self, called: str, options: Mapping[str, Any], make: Maker) -> Handle:
        """One activity of any kind."""
        activity = make(self.free_name(called, options), "")
        return self.add(with_condition(activity, self.when(options)), options)

    def each(self, called: str, options: Mapping[str, Any], make: Maker, loop: Loop, part: str = "") -> Handle:
        """One activity per element; the handle stands for the list of results, or of a part of each."""
        name = self.free_name(called, options)
        iteration = make(f"{name}.iteration", name)
        collected = iteration_outputs(iteration)
        if collected is not None and part:
            collected = Expr(f"{collected.text}.{part}")
        return self.add(
            ForEach(
                name=name,
                body=iteration,
                when=self.when(options),
                max_parallel=whole_number(options, "max_parallel"),
                on_fault="stop" if choice(options, "on_failure", ON_FAILURE, self.on_failure) == "stop" else "finish",
                collect=collected,
                collect_files=iteration_files(iteration),
                **tolerance(options.get("tolerate"), self),
                **loop.fields,
            ),
            options,
        )

    def include(self, flow: Flow) -> None:
        """Take in the flow that a call runs."""
        if self.calls.setdefault(flow.name, flow) != flow:
            raise bad_flow(f"two different flows are named `{flow.name}`; rename one")

    def job_fields(self, options: JobOptions, work: Mapping[str, Any]) -> dict[str, Any]:
        """All fields of a job: what it does, and what its options and those of all jobs say."""
        given: JobOptions = {**self.defaults, **options}
        if "limits" in self.defaults and "limits" in options:
            given["limits"] = {**limit_amounts(self.defaults["limits"]), **limit_amounts(options["limits"])}
        if "function" in work and given.get("container") not in (None, NO_CONTAINER):
            raise bad_flow(
                "the flow's container is for shell(...); a function runs in the pilot's own Python: say "
                "@job(container=None)"
            )
        fields = job_fields(given, self, self.folder)
        if "secrets" in self.defaults and "secrets" in options:
            fields["secrets"] = joined(secret_uses(self.defaults["secrets"]), fields["secrets"])
        fields["env"] = {**self.env, **template_of(self.defaults.get("env", {}), self, "env"), **fields["env"]}
        inputs = {**fields["inputs"], **work.get("inputs", {})}
        return {**fields, **work, "inputs": inputs}

    def when(self, options: Mapping[str, Any]) -> Expr | None:
        return condition_of(options["when"], self, self._results) if "when" in options else None

    def free_name(self, called: str, options: Mapping[str, Any]) -> str:
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

    def add(self, activity: Activity, options: Mapping[str, Any]) -> Handle:
        """Add the activity; it depends on everything that it uses."""
        needs = dict.fromkeys(self.named(options.get("needs", ())))
        after = dict.fromkeys(self.named(options.get("after", ())))
        after |= {name: None for name in needs if runs_without(activity, name)}
        used = names_used_by(activity)
        ends = {name[len(ENDS) + 1 :] for name in used if name.startswith(f"{ENDS}.")}
        needs = {name: None for name in needs if name not in after}
        ended = sorted(ends & self._places.keys(), key=self._places.__getitem__)
        after |= {name: None for name in ended if name not in needs}
        for job in (name[len("jobs.") :] for name in used if name.startswith("jobs.")):
            if job.removesuffix(".iteration") == activity.name:
                continue
            if job not in self.jobs:
                raise bad_flow(
                    f"`{activity.name}` uses `jobs.{job}`, which this flow does not have",
                    nearest_word(f"jobs.{job}", self.jobs),
                )
            if job not in after:
                needs.setdefault(job)
        self.refuse_lists_as_files(activity)
        self._activities[activity.name] = activity
        self._places[activity.name] = len(self._places)
        self.jobs[activity.name] = JobNeeds(activity, tuple(needs), tuple(each for each in after if each not in needs))
        result = JobResult(activity.name, activity)
        self._results[f"{result.path}.outputs"] = result.path
        return Handle(self, f"{result.path}.outputs", result)

    def refuse_lists_as_files(self, activity: Activity) -> None:
        """Refuse a list of files where one file stands."""
        job = activity.body if isinstance(activity, ForEach) else activity
        for path, source in job.inputs.items() if isinstance(job, JobActivity) else ():
            looping = isinstance(activity, ForEach)
            if (flaw := input_flaw(path, source, self._activities, looping=looping)) is not None:
                raise bad_flow(f"inputs: {flaw.message}", flaw.instead)

    def part(self, handle: Handle, name: str) -> Handle:
        """A part of a result that stands for the whole of it: the one output of a flow."""
        whole = handle[name]
        assert handle._result is not None, "it was just made"
        self._results[whole._expression] = handle._result.path
        return Handle(self, whole._expression, handle._result)

    def named(self, handles: Any) -> list[str]:
        """The jobs that handles come from."""
        found = []
        for handle in handles if isinstance(handles, (list, tuple)) else [handles]:
            if not isinstance(handle, Handle):
                raise bad_flow(f"needs and after take what jobs gave, not {handle!r}")
            used = [name for name in references(template_of(handle, self, "needs")) if name.startswith("jobs.")]
            if not used:
                raise bad_flow(f"needs and after take what jobs gave; `{handle._expression}` comes from none")
            found += [name[len("jobs.") :] for name in used]
        return found


def with_condition(activity: Activity, condition: Expr | None) -> Activity:
    return activity if condition is None else replace(activity, when=condition)


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
