"""A job: evaluate its data, submit it, and take its result.

It is submitted only when all its data is there: local files that are not stored yet are staged first, under their own
serial number. A job that the flow does not wait for is posted: the order stays owed until it is acknowledged, and the
flow continues at once."""

from collections.abc import Iterator
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from mendflow.core.data.folder_names import files_in, names_in_folder
from mendflow.core.data.path_arguments import with_placed_files
from mendflow.core.data.path_patterns import is_own_folder
from mendflow.core.engine import data
from mendflow.core.engine.activities.items import ItemKind
from mendflow.core.engine.activities.job_parts import CONVERTERS, amount_flaws
from mendflow.core.engine.faults import INVALID_EXPRESSION_VALUE, FlowFault, flow_fault
from mendflow.core.engine.messages import (
    STAGED_FILE_FAULT,
    CancelJob,
    Order,
    ResumeJob,
    StageFiles,
    SubmitJob,
    SuspendJob,
)
from mendflow.core.engine.plan import PlanNode
from mendflow.core.engine.run import Run
from mendflow.core.engine.state import JobItem
from mendflow.core.expressions import is_template
from mendflow.core.model.containers import JobContainer
from mendflow.core.model.data import Publication
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import JobActivity
from mendflow.core.model.jobs import JobSpec, Outcome, Submission
from mendflow.core.model.templates import ResourceTemplates
from mendflow.core.model.values import FileRef, Value, file_of, has_files, spilled_file

PARTS: Final = ("command", "container", "args", "kwargs", "env", "replicas", "files", "publish", "resources")


class JobTemplate(msgspec.Struct):
    """What is the same for every item of the job: a job with the parts without expressions, and which parts have
    some."""

    fixed: JobSpec
    templated: tuple[str, ...]


def each_file(inputs: dict[str, Value]) -> Iterator[tuple[str, Value]]:
    """The inputs one by one. A path that ends with `/` is a folder for the files of a list, each under the name
    that `names_in_folder` gives it."""
    for path, given in inputs.items():
        if not path.endswith("/") or given is None:
            yield path, given
            continue
        files, folder = files_in(given), "" if is_own_folder(path) else path
        for name, each in zip(names_in_folder(files), files, strict=True):
            if each is not None:  # an iteration that left no file
                yield folder + name, each


class JobKind(ItemKind[JobItem]):
    makes = JobItem
    withdrawal = CancelJob

    def prepare(self, run: Run, instance: JobItem) -> None:
        node = run.nodes[instance.node]
        activity: JobActivity = node.activity
        if activity.given is not None:
            instance.order = SubmitJob(serial=0, spec=replace(activity.given, item=instance.item))
            return
        if node.job_template is None:
            node.job_template = job_template(activity)
        fields: dict[str, Any] = {"item": instance.item}
        fixed = node.job_template.fixed
        for part in node.job_template.templated:
            fields[part] = CONVERTERS[part](resolve_part(run, instance.env, activity, part), activity.name)
        placed = place_arguments(activity, node.job_template, fields) if activity.function is not None else {}
        if activity.inputs or placed:
            fields.setdefault("replicas", fixed.replicas)
            fields["inputs"], fields["folders"] = self._gather_inputs(run, instance, activity, fields, placed)
        instance.order = SubmitJob(serial=0, spec=replace(fixed, **fields))

    def _gather_inputs(
        self, run: Run, instance: JobItem, activity: JobActivity, fields: dict[str, Any], placed: dict[str, Value]
    ) -> tuple[dict[str, FileRef], tuple[str, ...]]:
        """The files that are known by their content, and the folders that are empty. What is fetched by the pilot goes
        into the fields of the job, and what has to be staged first into the instance."""
        inputs: dict[str, FileRef] = {}
        wanted = {
            input_path(run, instance.env, activity, path): data.value_of(run.case, instance.env, source)
            for path, source in activity.inputs.items()
        }
        wanted |= placed
        for path, given in each_file(wanted):
            if path in inputs or path in instance.sources or path in instance.data:
                raise flow_fault(INVALID_EXPRESSION_VALUE, f"{activity.name}: two of its inputs are to stand at {path}")
            kept = file_of(given) or spilled_file(given)
            if kept is not None:
                inputs[path] = kept
            elif isinstance(given, str) and "://" in given:
                places = fields["replicas"]
                fields["replicas"] = {**places, path: (given, *places.get(path, ()))}
            elif isinstance(given, str) and given:
                instance.sources[path] = given
            elif path in wanted and is_data(given):
                instance.data[path] = given
            else:
                raise flow_fault(INVALID_EXPRESSION_VALUE, f"{activity.name}: {input_flaw(path, given)}")
        empty = (path for path, given in wanted.items() if path.endswith("/") and is_empty(given))
        return inputs, tuple(path for path in empty if not is_own_folder(path))

    def ask(self, run: Run, instance: JobItem) -> None:
        instance.staging = instance.needs_staging
        if not instance.staging:
            self.submit(run, instance)
            return
        serial = run.serial()
        instance.serial = serial
        self.send(run, instance, self.current_order(run.nodes[instance.node], instance), serial)

    def current_order(self, node: PlanNode, instance: JobItem) -> Order:
        if not instance.staging:
            return super().current_order(node, instance)
        order = node.activity.stage_in
        return StageFiles(
            serial=instance.serial, item=instance.item, files=instance.sources, order=order, data=instance.data
        )

    def submit(self, run: Run, instance: JobItem, staged: dict[str, FileRef] | None = None) -> None:
        assert isinstance(instance.order, SubmitJob)
        spec = instance.order.spec
        if staged:
            spec = replace(spec, inputs={**spec.inputs, **staged})
        spec = (
            replace(spec, publish={output: named_publication(spec, output) for output in spec.publish})
            if spec.publish
            else spec
        )
        serial = run.serial()
        instance.order = SubmitJob(serial=serial, spec=spec)
        if spec.submission is Submission.FORGET:
            run.case.posted[serial] = instance.order
            run.orders.append(instance.order)
            self.succeed(run, instance, Outcome())
        else:
            self.send(run, instance, instance.order, serial)

    def order_finished(self, run: Run, instance: JobItem, outcome: Outcome) -> None:
        if not instance.staging:
            super().order_finished(run, instance, outcome)
            return
        self.settle(run, instance)
        missing = [path for path in (*instance.sources, *instance.data) if path not in outcome.files]
        if outcome.fault is not None:
            raise FlowFault(outcome.fault)
        instance.staging = False
        if missing:
            message = f"{instance.item}: {', '.join(missing)} did not arrive"
            raise FlowFault(Fault(name=STAGED_FILE_FAULT, category=Category.DATA, message=message))
        self.submit(run, instance, outcome.files)

    def withdraw(self, run: Run, instance: JobItem) -> None:
        if instance.staging and instance.serial:
            # An unneeded staging does no harm; its end is refused as stale.
            run.answered(instance.serial)
            self.settle(run, instance)
        super().withdraw(run, instance)

    def suspend(self, run: Run, instance: JobItem) -> None:
        run.orders.extend(self.pauses(instance))

    def resume(self, run: Run, instance: JobItem) -> None:
        if instance.serial and not instance.staging:
            run.orders.append(ResumeJob(serial=instance.serial))

    def pauses(self, instance: JobItem) -> list[Order]:
        return [SuspendJob(serial=instance.serial)] if instance.serial and not instance.staging else []

    def phase(self, instance: JobItem) -> str:
        return "staging" if instance.staging else "submitted"


def place_arguments(activity: JobActivity, template: JobTemplate, fields: dict[str, Any]) -> dict[str, Value]:
    """Replace the files among the arguments of a function by their paths; the inputs that bring them there. Arguments
    stand in folders of their names, those without one in `with/`."""
    inputs: dict[str, Value] = {}
    taken = {path.partition("/")[0] for path in activity.inputs}
    for part in ("args", "kwargs"):
        if part not in template.templated or not has_files(fields[part]):
            continue
        named = fields[part].items() if part == "kwargs" else enumerate(fields[part])
        placed = {}
        for name, argument in named:
            plain = isinstance(name, str) and name.isidentifier() and name not in taken
            placed[name], more = with_placed_files(argument, str(name) if plain else f"with/{name}")
            inputs |= more
        fields[part] = placed if part == "kwargs" else list(placed.values())
    return inputs


def input_path(run: Run, env: int, activity: JobActivity, path: str) -> str:
    """Where an input stands in the job's folder, a file by its name; never outside it."""
    if "${{" not in path:
        return path
    file = file_of(data.value_of(run.case, env, path))
    worked_out = file.name if file is not None else data.text_of(run.case, env, path)
    parts = [part for part in worked_out.split("/") if part not in ("", ".")]
    if worked_out.startswith("/") or ".." in parts or not parts or "\0" in worked_out:
        told = f"{activity.name}: `{path}` gives {worked_out!r:.200}, which is no path inside the job's folder; "
        told += f'write `inputs: {{NAME: "{path}"}}` to have it there under a name'
        raise flow_fault(INVALID_EXPRESSION_VALUE, told)
    return worked_out


def is_empty(given: Value) -> bool:
    """Whether a list for a folder has no file in it: the job finds the folder all the same."""
    return isinstance(given, list) and all(each is None for each in files_in(given))


def is_data(given: Value) -> bool:
    """Whether a value can be written to a file as JSON: it is no text, which names a file, and has no file inside."""
    return isinstance(given, list | dict | int | float) and not has_files(given)


def input_flaw(path: str, given: Value) -> str:
    """Why this cannot be an input."""
    if given is None and path.endswith("/"):
        return (
            f"nothing is given for the folder {path} of its inputs; give a file or a list of files, which may be empty"
        )
    if given is None:
        return f"nothing is given for its input {path}; give a stored file or the path of one"
    if isinstance(given, list) and not path.endswith("/"):
        many = f"a list of {len(given)} files" if all(map(file_of, given)) else "a list with files in it"
        return f"its input {path} is {many}, and one file stands there; write `{path}/` to have a folder of them"
    if isinstance(given, dict):
        return f"its input {path} is a map with files in it, and one file stands there; give each a path of its own"
    return f"its input {path} is {given!r:.200}; give a stored file or the path of one"


def job_template(activity: JobActivity) -> JobTemplate:
    fixed: dict[str, Any] = {
        "item": "",
        "function": activity.function,
        "shell": activity.shell,
        "unstaged": activity.unstaged,
        "file_lists": activity.file_lists,
        "link_inputs": activity.link_inputs,
        "limits": activity.limits,
        "priority": activity.priority,
        "owner": activity.owner,
        "expected_ms": activity.expected_ms,
        "retries": activity.retries,
        "retry_wait_ms": activity.retry_wait_ms,
        "retry": activity.retry,
        "submission": activity.submission,
        "stage_in": activity.stage_in,
        "cache": activity.cache,
        "software": activity.software,
        "domain": activity.domain,
        "secrets": activity.secrets,
    }
    open_parts = []
    for part in PARTS:
        given = part_of(activity, part)
        if is_template(given):
            open_parts.append(part)
        elif given is not None:
            fixed[part] = CONVERTERS[part](given, activity.name)
    return JobTemplate(JobSpec(**fixed), tuple(open_parts))


def part_of(activity: JobActivity, part: str) -> Value:
    given = getattr(activity, part)
    if part == "publish":
        return {name: msgspec.structs.asdict(each) for name, each in given.items()}
    return msgspec.structs.asdict(given) if isinstance(given, (ResourceTemplates, JobContainer)) else given


def resolve_part(run: Run, env: int, activity: JobActivity, part: str) -> Value:
    given, case = part_of(activity, part), run.case
    if part == "command":
        return data.text_of(case, env, given)
    if part in ("env", "files"):
        return {data.text_of(case, env, key): data.text_of(case, env, each) for key, each in given.items()}
    found = data.value_of(case, env, given)
    if part == "resources" and (flaw := next(amount_flaws(given, found), "")):
        raise flow_fault(INVALID_EXPRESSION_VALUE, f"{activity.name}: {flaw}")
    return found


def named_publication(spec: JobSpec, output: str) -> Publication:
    """The publication of a file with its name: the given one, else that of the input that it is a copy of."""
    given = spec.publish[output]
    source = spec.inputs.get(spec.files.get(output, ""))
    if given.url:
        return given
    if given.logical or (source is not None and source.logical):
        return given if given.logical or source is None else replace(given, logical=source.logical)
    raise flow_fault(INVALID_EXPRESSION_VALUE, f"{spec.item}: {output} has no logical name; give it one")
