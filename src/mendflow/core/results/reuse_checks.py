"""Whether a job declares enough of itself that its result may be used again without anybody asking for that.

A wrong result that nobody notices is worse than a job that runs once more. So a result is used by itself only if the
job declares what it makes and what it is made from, and names nothing else that could have changed meanwhile. `cache:
true` in the job says that its author vouches for the rest; `cache: false`, that its result is never used again."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from mendflow.core.model.containers import is_fixed
from mendflow.core.model.jobs import JobSpec, Outcome, Submission
from mendflow.core.model.values import FileRef, Value, file_of, spilled_file
from mendflow.core.model.views import CachePolicy
from mendflow.lazy import LazyModule

if TYPE_CHECKING:
    from mendflow.core.results import script_dependencies
else:
    script_dependencies = LazyModule("mendflow.core.results.script_dependencies")

ALTHOUGH: Final = ", although "
"""Before the reason why a result that was used would not have been used by itself."""

NO_RESULT: Final = "no earlier result was made from the same, and no earlier case had a job of its name"


def why_never(spec: JobSpec) -> str:
    """Why no result may ever stand for this job's; empty if one may, when somebody asks for it."""
    return "it says `cache: false`" if spec.cache is False else ""


def why_undeclared(spec: JobSpec) -> str:
    """Why its result is not used again unless somebody asks for it; empty if it is."""
    if spec.cache:
        return ""
    if spec.submission is Submission.FORGET:
        return "nobody waits for its result, so what it does is done elsewhere"
    if spec.command is not None and not spec.files:
        return "it declares no `files`, so what it does is done elsewhere"
    if not (spec.inputs or spec.args or spec.kwargs):
        return "it declares no inputs, so nothing tells what it is made from"
    unread = next((path for path in spec.replicas if path not in spec.inputs), None) if spec.replicas else None
    if unread is not None:
        return f"its input {unread} is fetched by the pilot, and may be another file by now"
    if spec.inputs and any(not ref.sha256 for ref in spec.inputs.values()):
        return "the content of its inputs is not known"
    if spec.container is not None and not is_fixed(spec.container.image):
        return f"its image {spec.container.image} may be another by now: name a version (`:1.2`) or a digest"
    if spec.function is not None and spec.function.code is None:
        return "the code of its function is installed with the pilot, and may have changed"
    return _why_doubtful(spec)


def why_not_kept(outcome: Outcome) -> str:
    """Why a result is never used again: it is not what its job names that made it. Empty if it may be."""
    return outcome.code_mismatch


def why_doubted(spec: JobSpec, outcome: Outcome) -> str:
    """What a job turned out to read that it does not name, or not to wait for; empty if there is nothing, or its author
    vouches for it."""
    return "" if spec.cache else outcome.left_running or outcome.undeclared_reads


def why_run(spec: JobSpec, policy: CachePolicy) -> str:
    """Why a job ran of which nothing else is known; empty if its case uses no earlier results anyway."""
    if policy in ("", "none"):
        return ""
    reason = why_to_run(spec, policy)
    return f"it ran because {reason}" if reason == NO_RESULT else reason


def why_to_run(spec: JobSpec, policy: CachePolicy) -> str:
    """Why a job runs of which nothing else is known."""
    if policy in ("", "none"):
        return "no earlier results are to be used"
    if reason := why_never(spec):
        return f"its result is not looked for in the cache: {reason}"
    if policy == "declared" and (reason := why_undeclared(spec)):
        return f"its result is not looked for in the cache, as {reason}; --cached, or `cache: true` in it, does that"
    return NO_RESULT


def gives_nothing(outcome: Outcome) -> bool:
    """Whether a job made nothing that its flow could use: then its effect, if it had one, is elsewhere."""
    return outcome.outputs is None and not outcome.files and not outcome.file_lists


def _why_doubtful(spec: JobSpec) -> str:
    """What it names that is not in its key, and so may have changed; empty if there is nothing."""
    variables = frozenset((*spec.env, *(each.variable for each in spec.secrets)))  # a key has the names of secrets
    if spec.command and (reason := script_dependencies.first_doubt(spec.command, spec.shell, variables)):
        return reason
    texts = (*spec.env.values(), *_texts((*spec.args, *spec.kwargs.values())))
    named = next((doubt for text in texts for doubt in script_dependencies.doubts_of_text(text)), None)
    return named.sentence() if named is not None else ""


def _texts(given: Value) -> Iterator[str]:
    pending: list[Value] = [given]
    while pending:
        value = pending.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, list | tuple):
            pending.extend(reversed(value))
        elif isinstance(value, dict) and file_of(value) is None:
            pending.extend(value.values())


def stored_files(outcome: Outcome) -> Iterator[tuple[str, FileRef]]:
    """All files that a result consists of, those that its outputs refer to included."""
    yield from outcome.files.items()
    for name, refs in outcome.file_lists.items():
        yield from ((name, ref) for ref in refs)
    yield from ((f"outputs ({ref.name})", ref) for ref in outcome.contents)
    if not isinstance(outcome.outputs, dict | list):
        return
    pending: list[tuple[str, Value]] = [("outputs", outcome.outputs)]
    while pending:
        name, value = pending.pop()
        ref = file_of(value) or spilled_file(value)
        if ref is not None:
            yield name, ref
        elif isinstance(value, dict):
            pending.extend((str(key), below) for key, below in value.items())
        elif isinstance(value, list):
            pending.extend((name, below) for below in value)
