"""Writes the page of who may do what from the table of operations: `python tools/access_matrix.py`.

What a cell says, tests/server/test_access_matrix.py tries against a server; tests/shape holds the page to what this
makes."""

import sys
from pathlib import Path
from typing import Final

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src")]

from mendflow.core.model.principals import PROJECT_ROLES, Principal, ProjectRole  # noqa: E402 - found beside this folder
from mendflow.operations.operation import ApiOperation  # noqa: E402 - as above
from mendflow.operations.table import OPERATIONS  # noqa: E402 - as above

TARGET = ROOT / "docs" / "reference" / "access.md"
MINE: Final = "mine"
"""The project of what is asked about; the other one is another."""
YES, OWN, TASK, FORBIDDEN, MISSING, STRANGER = "yes", "own", "task", "403", "404", "401"


def _in(project: str, role: ProjectRole) -> Principal:
    return Principal(f"{role} of {project}", frozenset(), {project: role})


PRINCIPALS: Final[dict[str, Principal | None]] = {
    "nobody": None,
    **{role: _in(MINE, role) for role in PROJECT_ROLES},
    **{f"{role} elsewhere": _in("another", role) for role in PROJECT_ROLES},
    "pilot": Principal("pilot", frozenset({"pilot"})),
    "engine": Principal("engine", frozenset({"engine"})),
    "metrics": Principal("metrics", frozenset({"metrics"})),
    "administrator": Principal("administrator", frozenset({"admin"})),
}


def expected(operation: ApiOperation, caller: Principal | None) -> str:
    """What becomes of a request about something of the project `mine`."""
    allowed, subject = operation.allowed, operation.subject
    assert subject is not None, f"{operation.name} says what it is about"
    if allowed.anybody or (caller is not None and caller.is_admin):
        return YES
    if caller is None:
        return STRANGER
    if not allowed.allow(caller):
        return FORBIDDEN
    if subject.kind == "stored file":
        return OWN
    if allowed.allow_without_project(caller):
        return YES
    if not subject.is_single:
        return OWN if subject.kind == "listed" else YES
    if not caller.may("viewer", MINE):
        return FORBIDDEN if subject.makes else MISSING
    return TASK if allowed.own_task else YES


HEAD: Final = """# Who may do what

This page is made from the table of operations; `python tools/access_matrix.py` writes it. [Say who may do
what](../do/access.md) says what projects and roles are.

Each row is an operation of the API, asked about something that belongs to one project. The columns are roles in that
project, the highest role in another project ("elsewhere"), and roles in the installation. Administrators of the
installation may do everything, and are not shown.

| cell | means |
|---|---|
| yes | it is done |
| own | it is done, with what belongs to the caller's own projects |
| task | it is done if the caller has the role of the user task |
| 401 | a token is wanted |
| 403 | the role is not enough, or the name belongs to another project |
| 404 | for this caller it does not exist |

"""
COLUMNS: Final = ("nobody", *PROJECT_ROLES, "admin elsewhere", "pilot", "engine", "metrics")


def page() -> str:
    heads = ["operation", "about", *(name.replace("admin", "project admin") for name in COLUMNS)]
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    for name, operation in sorted(OPERATIONS.items()):
        assert operation.subject is not None
        cells = [expected(operation, PRINCIPALS[column]) for column in COLUMNS]
        lines.append(f"| `{name}` | {operation.subject.kind} | {' | '.join(cells)} |")
    return HEAD + "\n".join(lines) + "\n"


if __name__ == "__main__":
    TARGET.write_text(page())
