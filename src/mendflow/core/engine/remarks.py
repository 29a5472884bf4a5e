"""What in a flow is allowed and is probably not what its author meant. A problem keeps a flow from running; these are
told, by `mendflow check` and before a run, and the flow runs."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from mendflow.core.data.protocols import CLIENT_PROGRAMS, protocol_of
from mendflow.core.engine.plan import walk_activities
from mendflow.core.engine.result_checks import templates_of
from mendflow.core.expressions import ExpressionError, expressions_of, template_parts
from mendflow.core.expressions.comparisons import compared_with_decimals, shown, text_comparisons
from mendflow.core.expressions.scanner import plain_reference
from mendflow.core.model.expr import CEL, Expr
from mendflow.core.model.flow import ActivityNode, Flow, ForEach, Input, JobActivity, UserTask
from mendflow.core.model.shells import runs_in_shell
from mendflow.core.model.values import Value
from mendflow.core.model.yes_no import is_yes_or_no
from mendflow.lazy import lazy_pattern

Activities = Mapping[str, ActivityNode]

_DECIMAL: Final = lazy_pattern(r"\d+\.\d+")
_MAPPED: Final = lazy_pattern(r"\bjobs\.`?([\w-]+)`?\.outputs\.(?:map|all|exists|exists_one)\(\s*(\w+)\s*,")


def remarks_on(flow: Flow) -> list[str]:
    """A sentence for each thing that should be looked at, with the name of what it is about before it."""
    if flow.xml is not None:
        return []
    found = [each for each in walk_activities(flow) if isinstance(each, ActivityNode)][::-1]
    activities = {each.name: each for each in found}
    told = [
        f"{getattr(part, 'label', '') or part.name}: {remark}"
        for part in (*found, flow)
        for remark in _of_part(part, activities, flow.inputs)
    ]
    return list(dict.fromkeys(told))


def _of_part(part: ActivityNode | Flow, activities: Activities, inputs: Mapping[str, Input]) -> Iterator[str]:
    for template in templates_of(part):
        for text in _texts(template):
            yield from _never_equal(text, activities)
            yield from _sometimes_text(text, activities)
            yield from _never_equal_input(text, inputs)
            yield from _with_failed_ones(text, activities)
    if isinstance(part, JobActivity) and part.command is not None and runs_in_shell(part.shell):
        yield from _names_of_files(part.command)
    if isinstance(part, JobActivity):
        yield from _client_programs(part)
    if isinstance(part, ActivityNode) and part.when is not None and part.when.language == CEL:
        yield from _undeclared_answer(part.when.text, activities)


def _client_programs(job: JobActivity) -> Iterator[str]:
    """What is spoken by a program is spoken only where that is installed, and nobody knows yet where the job runs."""
    urls = [*job.inputs.values(), *(each.url for each in job.publish.values())]
    for protocol in sorted({protocol_of(url) for url in urls if isinstance(url, str)} & CLIENT_PROGRAMS.keys()):
        yield f"files over {protocol}:// need the program `{CLIENT_PROGRAMS[protocol]}` where its pilot runs"


def _texts(template: Any) -> list[str]:
    if isinstance(template, Expr):
        return [template.text] if template.language == CEL else []
    try:
        return [piece.text for piece in expressions_of(template)]
    except ExpressionError:
        return []  # it is a problem, and told as one


def _never_equal(text: str, activities: Activities) -> Iterator[str]:
    """Scripts leave `found=true` as true, so a comparison with 'true' does not ask what it seems to ask."""
    for found in text_comparisons(text) if "'" in text or '"' in text else ():
        path = found.path
        if path.root != "jobs" or len(path.members) != 3 or path.members[1] != "outputs":
            continue
        job = activities.get(path.members[0])
        if isinstance(job, JobActivity) and job.command is not None:
            plain, how = _plain(found.data), "always" if found.do == "!=" else "never"
            yield (
                f"`{shown(path)} {found.do} {found.text!r}` is {how} true: a script that writes "
                f"{path.members[2]}={found.text} leaves {plain}, not a text; write `{found.do} {plain}`"
            )


def _sometimes_text(text: str, activities: Activities) -> Iterator[str]:
    """Nothing that a script prints is rounded: 0.5070 is a text, as 1.10 is, which may be a version."""
    for path, number in compared_with_decimals(text) if "." in text else ():
        if path.root != "jobs" or len(path.members) != 3 or path.members[1] != "outputs":
            continue
        job = activities.get(path.members[0])
        if isinstance(job, JobActivity) and job.command is not None:
            written = "a decimal with a 0 at its end leaves a text"
            if _DECIMAL.fullmatch(repr(number)):
                written = f"{path.members[2]}={number}0 leaves a text, because of the 0 at its end"
            yield (
                f"`{shown(path)}` is compared with {number}: a script that writes {written}, and texts are not "
                f"compared with numbers; write `double({shown(path)})`"
            )


def _never_equal_input(text: str, inputs: Mapping[str, Input]) -> Iterator[str]:
    """An input that is declared as a number, or as true or false, is no text, however it was given."""
    for found in text_comparisons(text) if "'" in text or '"' in text else ():
        path = found.path
        if path.root != "inputs" or len(path.members) != 1 or path.members[0] not in inputs:
            continue
        if (declared := inputs[path.members[0]].type) in ("number", "boolean"):
            how = "always" if found.do == "!=" else "never"
            kind = "a number" if declared == "number" else "true or false"
            yield (
                f"`{shown(path)} {found.do} {found.text!r}` is {how} true: the input is {kind}, not a text; "
                f"write `{found.do} {_plain(found.data)}`"
            )


def _plain(data: Value) -> str:
    return str(data).lower() if isinstance(data, bool) else str(data)


def _with_failed_ones(text: str, activities: Activities) -> Iterator[str]:
    """Under `tolerate` the outputs of a loop have null for what failed, and null has no members."""
    for found in _MAPPED.finditer(text):
        name, variable = found.groups()
        loop = activities.get(name)
        if not isinstance(loop, ForEach) or (loop.tolerate is None and loop.tolerate_percent is None):
            continue
        rest = text[found.end() :]
        asks = re.search(rf"\b{variable}\s*[.\[]", rest)
        if asks and not re.search(rf"\b{variable}\s*[!=]=\s*null|has\(\s*{variable}\b", rest):
            yield (
                f"what failed is null in `jobs.{name}.outputs`, as `tolerate` lets some fail, and null has no members; "
                f"leave it out: `jobs.{name}.outputs.filter({variable}, {variable} != null)`"
            )


def _names_of_files(command: str) -> Iterator[str]:
    """The name of a file may be anything, and a shell runs what stands in it."""
    try:
        paths = [plain_reference(piece.text) for piece in template_parts(command) if piece.is_expression]
    except ExpressionError:
        return
    for path in paths:
        if path is not None and path.members[-1:] == ("name",) and path.members[:1] != ("outputs",):
            text = ".".join((path.name, *path.members))
            yield (
                f"`${{{{ {text} }}}}` puts the name of a file into the command as it is, and a shell would run what "
                f"stands in it; write `${{{{ quote({text}) }}}}`, without quotation marks around it"
            )


def _undeclared_answer(text: str, activities: Activities) -> Iterator[str]:
    """A condition that is a field of a user task, of which nobody said that it is yes or no."""
    path = plain_reference(text.removeprefix("!"))
    if path is None or len(path.members) != 2 or path.members[0] != "outputs":
        return
    task, field = activities.get(path.name.removeprefix("jobs.")), path.members[1]
    if isinstance(task, UserTask) and field in task.fields and not is_yes_or_no(task.fields[field]):
        yield (
            f"its condition is `{field}` of a user task, which may be any value; declare it as one that is true or "
            f"false: `fields: {{{field}: yes or no}}`"
        )
