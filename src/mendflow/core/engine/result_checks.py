"""Whether what an expression asks of a job is something that the job leaves, as far as the flow says it.

`jobs.NAME.files.FILE` must be declared, of a loop it is a list, and a list does not stand where one file does. Whoever
reads a flow file asks this with the place at hand; a flow that comes from elsewhere is asked when it is compiled."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from mendflow.core.engine.collect_hints import collect_hint, jobs_inside
from mendflow.core.engine.expression_checks import FIELDS, OF_EACH
from mendflow.core.expressions import ExpressionError, expressions_of
from mendflow.core.expressions.cel import FILE_WORDS, closest_name, file_hint
from mendflow.core.expressions.scanner import Reference, plain_reference, scan
from mendflow.core.model.expr import CEL, Expr
from mendflow.core.model.flow import ActivityNode, Call, ForEach, JobActivity, Stage, UserTask

RESULT_FIELDS: Final = ("outputs", "files", "exit_code")
"""What an activity leaves, under `jobs.NAME`."""

FAULT_FIELDS: Final = ("failed", "fault")
"""What it leaves if it was made to fail and the flow went on."""


class ResultFlaw(NamedTuple):
    """Why there is no such result; `word` is the name that is wrong, and `known` are those that there are."""

    message: str
    word: str = ""
    known: tuple[str, ...] = ()
    instead: str = ""


def files_left_by(activity: ActivityNode) -> tuple[str, ...] | None:
    """The names of the files that an activity leaves; None if only the run will tell. A file that is written to a URL
    of its own is nowhere else."""
    if isinstance(activity, ForEach):
        return tuple(activity.collect_files)
    if not isinstance(activity, (JobActivity, Stage)):
        return ()
    if any("${{" in name for name in activity.files):
        return None
    written = activity.publish if isinstance(activity, JobActivity) else {}
    return tuple(name for name in activity.files if name not in written or not written[name].url)


def result_flaw(
    name: str, members: tuple[str, ...], activities: Mapping[str, ActivityNode], meant: str = ""
) -> ResultFlaw | None:
    """What is wrong with `jobs.NAME` and these members; None if nothing is, or if there is no such activity. `meant` is
    the activity's real name, where people call it otherwise."""
    activity = activities.get(meant or name)
    if activity is None or not members:
        return None
    member, *further = members
    if isinstance(activity, ForEach) and (flaw := _inner_flaw(activity, members)) is not None:
        return flaw
    if member not in RESULT_FIELDS and member not in FAULT_FIELDS:
        message = f"`jobs.{name}` has no `{member}`; it has {', '.join(RESULT_FIELDS)}"
        return ResultFlaw(message, member, RESULT_FIELDS, f"`jobs.{name}.outputs.{member}`")
    if member == "files" and further:
        return _file_flaw(name, further, activity, files_left_by(activity))
    if member == "outputs" and further and isinstance(activity, ForEach):
        if activity.collect is None and not activity.collect_map:
            hint = collect_hint(activity, members)
            return ResultFlaw(hint or f"`jobs.{name}` is a loop that collects nothing; say what with `collect:`")
        message = f"`jobs.{name}.outputs` is a list, one for each iteration, and has no `{further[0]}`"
        tolerates = activity.tolerate is not None or activity.tolerate_percent is not None
        those = f"jobs.{name}.outputs.filter(o, o != null)" if tolerates else f"jobs.{name}.outputs"
        return ResultFlaw(message, instead=f"`{those}.map(o, o.{further[0]})`")
    if member == "outputs" and further and isinstance(activity, UserTask):
        return _field_flaw(name, further[0], activity)
    return None


def _inner_flaw(loop: ForEach, members: tuple[str, ...]) -> ResultFlaw | None:
    """A job inside a loop is asked for through the loop."""
    inner = jobs_inside(loop)
    is_asked = members[0] in inner or (members[0] == "jobs" and members[1:2] and members[1] in inner)
    return ResultFlaw(collect_hint(loop, members)) if is_asked else None


def _field_flaw(name: str, field: str, task: UserTask) -> ResultFlaw | None:
    """A user task gives the outputs that it asks for."""
    if field in task.fields:
        return None
    if not task.fields:
        return ResultFlaw(f"the user task `{name}` asks for no outputs; declare it: `fields: {{{field}: yes or no}}`")
    return ResultFlaw(f"the user task `{name}` has no field `{field}`", field, tuple(task.fields))


def _file_flaw(
    name: str, members: list[str], activity: ActivityNode, known: tuple[str, ...] | None
) -> ResultFlaw | None:
    file, *further = members
    if known is None:
        return None
    if file not in known:
        return _missing_file(name, members, activity, known)
    if further and isinstance(activity, ForEach):
        message = f"`jobs.{name}.files.{file}` is a list, one for each iteration, and has no `{further[0]}`"
        return ResultFlaw(message, instead=f"`jobs.{name}.files.{file}.map(f, f.{further[0]})`")
    if further and isinstance(activity, JobActivity) and file in activity.file_lists:
        message = f"`jobs.{name}.files.{file}` is a list of files, and has no `{further[0]}`"
        return ResultFlaw(message, instead=f"`jobs.{name}.files.{file}.map(f, f.{further[0]})`")
    if further and isinstance(activity, JobActivity) and further[0] in FILE_WORDS:
        whole = f"jobs.{name}.files.{file}"
        return ResultFlaw(f"`{whole}` is a file and has no `{further[0]}`{file_hint(whole, further[0])}")
    return None


def _missing_file(name: str, members: list[str], activity: ActivityNode, known: tuple[str, ...]) -> ResultFlaw:
    if isinstance(activity, Call):
        return ResultFlaw(f"`{name}` leaves no files; a called flow hands them on among its outputs")
    if isinstance(activity, ForEach) and not known:
        hint = collect_hint(activity, ("files", *members))
        return ResultFlaw(hint or f"`{name}` leaves no files: the last of its steps is no job with `files:`")
    if not known and not isinstance(activity, (JobActivity, Stage)):
        return ResultFlaw(f"`{name}` leaves no files")
    dotted = next((each for each in known if each == ".".join(members[: each.count(".") + 1])), "")
    if dotted:
        message = f"a name with a dot stands in brackets: `{name}` leaves the file `{dotted}`"
        return ResultFlaw(message, instead=f"`jobs.{name}.files['{dotted}']`")
    return ResultFlaw(f"`{name}` leaves no file `{members[0]}`; name it under its `files:`", members[0], known)


def input_flaw(
    path: str, source: Any, activities: Mapping[str, ActivityNode], *, looping: bool = False
) -> ResultFlaw | None:
    """Whether a list of files is given where one file stands. `looping`: a loop is around it, which probably goes over
    the same elements."""
    if path.endswith("/") or not isinstance(source, str) or "${{" not in source:
        return None
    found = list(references_in(source))
    if len(found) != 1 or not found[0].name.startswith("jobs."):
        return None
    name = found[0].name.removeprefix("jobs.")
    whole = ".".join((found[0].name, *found[0].members))
    if source.replace("`", "").strip().removeprefix("${{").removesuffix("}}").strip() != whole:
        return None
    activity, members = activities.get(name), found[0].members
    if members[:1] != ("files",) or len(members) != 2:
        return None
    if isinstance(activity, JobActivity) and members[1] in activity.file_lists:
        message = f"`{whole}` is a list of files, and `{path}` is one file"
    elif isinstance(activity, ForEach):
        message = f"`{whole}` is a list of files, one for each iteration, and `{path}` is one file"
    else:
        return None
    if "${{" in path:
        return ResultFlaw(
            f"`{whole}` is a list of files", instead=f'`{{parts/: "${{{{ {whole} }}}}"}}`, a folder of them'
        )
    if looping and isinstance(activity, ForEach):
        each = f"`${{{{ {whole}[index] }}}}`, that of the same element (or both under the `jobs:` of one `for-each`"
        return ResultFlaw(message, instead=f"{each}; `{path}/` is a folder of all)")
    return ResultFlaw(message, instead=f"`{path}/`, a folder of them")


def references_in(template: Any) -> Iterator[Reference]:
    """What the expressions of a template, or an expression, ask for; one that cannot be read asks for nothing here."""
    try:
        if isinstance(template, Expr):
            texts = [template.text] if template.language == CEL else []
        else:
            texts = [piece.text for piece in expressions_of(template)]
        for text in texts:
            plain = plain_reference(text)
            yield from (plain,) if plain is not None else scan(text).references
    except ExpressionError:
        return


def result_problems(activities: Mapping[str, ActivityNode], parts: Iterator[Any]) -> Iterator[str]:
    """What is wrong with what the parts of a flow ask of its activities."""
    in_loops = {id(each.body) for each in activities.values() if isinstance(each, ForEach)}
    for part in parts:
        shown = getattr(part, "name", "") or "the flow"
        for value in templates_of(part):
            for reference in references_in(value):
                family, _, name = reference.name.partition(".")
                flaw = result_flaw(name, reference.members, activities) if family == "jobs" else None
                if flaw is not None:
                    yield f"{shown:.100}: {flaw.message}{_hint(flaw)}"
        if isinstance(part, ActivityNode) and (wrong := _whole_task(part, activities)):
            yield f"{shown:.100}: {wrong}"
        if isinstance(part, JobActivity):
            for path, source in part.inputs.items():
                if (flaw := input_flaw(path, source, activities, looping=id(part) in in_loops)) is not None:
                    yield f"{shown:.100}: {flaw.message}{_hint(flaw)}"


def _whole_task(part: ActivityNode, activities: Mapping[str, ActivityNode]) -> str:
    """A user task is no condition: what it gives are its fields."""
    path = plain_reference(part.when.text) if part.when is not None and part.when.language == CEL else None
    if path is None or path.members != ("outputs",):
        return ""
    task = activities.get(path.name.removeprefix("jobs."))
    if not isinstance(task, UserTask):
        return ""
    field = next(iter(task.fields), "approved")
    return (
        f"its condition is the whole user task `{task.name}`, which is neither true nor false; name a field of it, "
        f"`{task.name}.{field}` in Python and `jobs.{task.name}.outputs.{field}` in YAML, with "
        f"`fields: {{{field}: yes or no}}`"
    )


def _hint(flaw: ResultFlaw) -> str:
    return closest_name(flaw.word, flaw.known) or (f"; did you mean {flaw.instead}?" if flaw.instead else "")


def templates_of(part: Any) -> Iterator[Any]:
    """The templates and expressions of a part of a flow that may ask for a job."""
    fields = FIELDS.get(type(part), ())
    for field in (*OF_EACH, *fields) if isinstance(part, ActivityNode) else fields:
        value = getattr(part, field)
        if isinstance(value, Expr):
            yield value
        elif field == "collect_files":
            yield from value.values()
        elif isinstance(value, msgspec.Struct):
            yield from templates_of(value)
        elif isinstance(value, tuple) and value and isinstance(value[0], msgspec.Struct):
            for each in value:
                yield from templates_of(each)
        elif field == "publish":
            for each in value.values():
                yield from templates_of(each)
        elif value and not isinstance(value, (int, float)):
            yield value
