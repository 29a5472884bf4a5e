"""What an iteration of a loop gives, where the flow does not say: the outputs and the files of its job, or of the last
of its steps, if that leaves any."""

import json
from typing import Final

from mendflow.core.engine.result_checks import files_left_by
from mendflow.core.expressions import RESERVED
from mendflow.core.model.expr import Expr
from mendflow.core.model.flow import Activity, Call, ForEach, JobActivity, Scope, Sequence, Stage, UserTask
from mendflow.lazy import lazy_pattern

MEMBER: Final = lazy_pattern(r"[A-Za-z_][A-Za-z0-9_]*")
UNDOABLE_SUFFIX: Final = ".kept"
"""How the scope around a step is called that says how it is undone."""

WATCHED_SUFFIX: Final = ".watched"
"""How the scope around a step is called that says what to do when it has failed."""


def iteration_outputs(body: Activity) -> Expr | None:
    last = last_of(body)
    if not isinstance(last, (JobActivity, UserTask, Call, ForEach)):
        return None
    return _left_by(last, body, "outputs")


def iteration_files(body: Activity) -> dict[str, Expr]:
    last = last_of(body)
    if not isinstance(last, (JobActivity, Stage, ForEach)):
        return {}
    return {name: _left_by(last, body, f"files{member(name)}") for name in files_left_by(last) or ()}


def member(name: str) -> str:
    return f".{name}" if MEMBER.fullmatch(name) and name not in RESERVED else f"[{json.dumps(name)}]"


def last_of(body: Activity) -> Activity:
    body = without_handlers(body)
    return body.body[-1] if isinstance(body, Sequence) and body.body else body


def without_handlers(body: Activity) -> Activity:
    while isinstance(body, Scope) and body.name.endswith((UNDOABLE_SUFFIX, WATCHED_SUFFIX)):
        body = body.body
    return body


def _left_by(last: Activity, body: Activity, what: str) -> Expr:
    left = f"jobs.`{last.name}`"
    is_alone = last is without_handlers(body)
    return Expr(f"{left}.{what}" if is_alone else f"has({left}) ? {left}.{what} : null")
