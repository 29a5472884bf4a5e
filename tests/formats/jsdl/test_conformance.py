"""Documents that others wrote: the good ones are jobs, the broken ones are refused with the reason."""

import warnings
from pathlib import Path

from mendflow.core.engine.plan import compile_flow
from mendflow.core.model.errors import BadFlow
from mendflow.core.model.flow import JobActivity
from mendflow.formats import load
from mendflow.formats.jsdl import read_jsdl, write_jsdl

CONFORMANCE = Path(__file__).parents[4] / "shared" / "conformance" / "jsdl"
BROKEN = {
    "invalid.jsdl": "urn:wrongnamespace",
    "invalid-staging.jsdl": "`urn` is not supported",
    "wrong-creationFlag.jsdl": "<CreationFlag> append cannot be honoured",
    "wrong-executable.jsdl": "is a line for a shell, and no program",
    "wrong-stagein-url.jsdl": "is a line for a shell, and no program",
}
GOOD = frozenset(
    f"{name}.jsdl"
    for name in ("cat", "cat-staging", "date", "echoenv", "helloworld", "invalid-application", "mpi-sample", "sleep")
) | {"staging.jsdl", "uname.jsdl"}
"""One of these names a program that nobody has; only running it tells."""


def documents() -> list[Path]:
    """Those that there are; where the folder is not there, it is said so, and nothing of it was tried."""
    found = sorted(CONFORMANCE.glob("*.jsdl"))
    if not found:
        warnings.warn(f"no job descriptions of others lie at {CONFORMANCE}; none was tried", stacklevel=2)
    return found


def test_every_document_of_others_is_a_job_or_refused_with_the_reason() -> None:  # FM-2
    for path in documents():
        try:
            flow = load(path)
        except BadFlow as error:
            assert BROKEN.get(path.name, "") in str(error), path.name
            assert path.name not in GOOD, f"{path.name}: {error}"
            assert all(problem.file == str(path) and problem.line for problem in error.problems)
        else:
            assert path.name not in BROKEN, path.name
            compile_flow(flow)
            assert isinstance(flow.body, JobActivity) and flow.body.command, path.name


def test_every_good_document_of_others_says_the_same_when_it_is_written_again() -> None:  # FM-2
    for path in documents():
        if path.name in GOOD:
            flow = load(path)
            assert read_jsdl(write_jsdl(flow), path) == flow, path.name
