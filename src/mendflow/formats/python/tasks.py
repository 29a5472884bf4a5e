"""`task(...)`: a person's work as a step of a flow in Python."""

from collections.abc import Mapping
from typing import Any, Unpack

from mendflow.core.model.expr import Expr
from mendflow.core.model.flow import UserTask
from mendflow.core.model.units import DURATION_EXAMPLES, duration_ms
from mendflow.formats.python.builder import FlowBuilder, current_builder
from mendflow.formats.python.handles import Handle, template_of
from mendflow.formats.python.options import KNOWN_OF_CALLS, CallOptions, check_options
from mendflow.formats.python.problems import bad_flow, collect


def task(
    title: str = "",
    /,
    *,
    role: str = "",
    description: str = "",
    data: Any = None,
    fields: Mapping[str, str] | None = None,
    deadline: Any = None,
    **options: Unpack[CallOptions],
) -> Any:
    """A person's work, which waits in the worklist of those who have the role. What they give is the result, a dict
    with the `fields`. Rejected, or not done by the deadline, it has failed."""
    building = current_builder.get()
    if callable(title) or not title or building is None:
        raise bad_flow(
            'task("Publish?", role="editor") is a person\'s work, in the body of a flow; a function becomes a job with '
            "@job"
        )
    known, problems = check_options(options, KNOWN_OF_CALLS, "a task")
    collect(problems)

    def make(name: str, label: str) -> UserTask:
        return UserTask(
            name=name,
            label=label,
            role=checked_role(role),
            title=template_of(title, building, "the title"),
            description=template_of(description, building, "description"),
            data=template_of(data, building, "data"),
            fields=checked_fields(fields or {}),
            deadline_ms=deadline_of(deadline, building),
        )

    return building.with_problems_collected("task", lambda: building.step("task", known, make))


def checked_role(role: Any) -> str:
    if not isinstance(role, str) or not role.strip():
        raise bad_flow('a task needs the role of those who may do it: task("Publish?", role="editor")')
    return role


def checked_fields(fields: Any) -> dict[str, str]:
    if isinstance(fields, (list, tuple)) and all(isinstance(each, str) for each in fields):
        return {each: "" for each in fields}
    if not isinstance(fields, Mapping) or not all(isinstance(each, str) for pair in fields.items() for each in pair):
        raise bad_flow('fields are the outputs that are wanted, each with a description: {"page": "where it goes"}')
    return dict(fields)


def deadline_of(given: Any, building: FlowBuilder) -> Expr | int:
    if given is None:
        return 0
    if isinstance(given, Handle):
        template_of(given, building, "deadline")
        return Expr(given._expression)
    found = duration_ms(given) if isinstance(given, str) else None
    if found is None:
        raise bad_flow(f"deadline is a duration such as {DURATION_EXAMPLES}, not {given!r:.80}")
    return found
