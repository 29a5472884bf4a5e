"""The stored files that work of another domain refers to, and those that its outcome does."""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from mendflow.core.model.data import LOGICAL_PREFIX
from mendflow.core.model.domains import SentWork
from mendflow.core.model.flow import Flow
from mendflow.core.model.jobs import KEPT_PREFIX, JobSpec, Outcome
from mendflow.core.model.values import FileRef, Value, file_of, spilled_file

_SIGNS: Final = (b'"$file":', b'"$spilled":', b'"sha256":')
"""What stands before the digest where values and structures refer to files."""
_SCALARS: Final = frozenset((type(None), bool, int, float, str))
_FEW: Final = 16


def files_in_value(value: Value) -> Iterator[FileRef]:
    """The files that a value refers to, wherever in it; those with logical names are where the catalogue says. A map
    may be read as either kind of reference, and what is in it too."""
    for each in maps_in(value) if _may_refer(value) else ():
        yield from files_of_map(each)


def maps_in(value: Value) -> Iterator[dict[str, Value]]:
    """All maps of a value, wherever in it."""
    pending: list[Value] = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, dict):
            yield each
            pending.extend(each.values())
        elif isinstance(each, (list, tuple)):
            pending.extend(each)


def _may_refer(part: Any) -> bool:
    """Whether there is anything in it that looks like a reference. The way to find that out is much quicker than a look
    at each element, of which somebody may send many. Most jobs have a few scalars, and those are seen at once."""
    kind = type(part)
    if kind in _SCALARS:
        return False
    if kind is list or kind is tuple:
        if len(part) <= _FEW and _SCALARS.issuperset(map(type, part)):
            return False
    elif kind is dict and not part:
        return False
    try:
        written = msgspec.json.encode(part)
    except (TypeError, ValueError, RecursionError):
        return True
    return any(sign in written for sign in _SIGNS)


def files_of_map(part: dict[str, Value]) -> list[FileRef]:
    """The files that a map itself refers to."""
    return [found for found in (file_of(part), spilled_file(part)) if found is not None]


def spilled_in_value(value: Value) -> Iterator[str]:
    """The digests of the parts of a value that are stored as files because of their size."""
    for each in maps_in(value) if _may_refer(value) else ():
        if (found := spilled_file(each)) is not None:
            yield found.sha256


def files_in_outcome(outcome: Outcome | None) -> list[FileRef]:
    """The stored files that belong to an outcome, each once. What a job tells of itself while it runs refers to none:
    nobody has checked it."""
    return once(_named_in_outcome(outcome)) if outcome is not None else []


def files_made_in_outcome(outcome: Outcome | None) -> list[FileRef]:
    """The same without the log, of which people see what is left when it is masked, and nobody the file."""
    return files_in_outcome(msgspec.structs.replace(outcome, log=None) if outcome is not None else None)


def logical_files_in_outcome(outcome: Outcome) -> list[FileRef]:
    """The files with logical names that an outcome refers to, each once."""
    return list(dict.fromkeys(each for each in _named_in_outcome(outcome) if each.logical))


def files_given_by_outcome(outcome: Outcome) -> tuple[list[FileRef], list[FileRef]]:
    """The files with logical names that an outcome refers to, and the stored ones."""
    return _by_kind(_named_in_outcome(outcome))


def may_give_files(outcome: Outcome) -> bool:
    """Whether there is anything in an outcome that looks like a reference to a file. Most have nothing."""
    named = outcome.files or outcome.contents or outcome.file_lists or outcome.log is not None
    return bool(named) or _may_refer(outcome.outputs)


def _named_in_outcome(outcome: Outcome) -> list[FileRef]:
    found = [*outcome.files.values(), *outcome.contents]
    for refs in outcome.file_lists.values():
        found += refs
    if _may_refer(outcome.outputs):
        found += files_in_value(outcome.outputs)
    if outcome.log is not None:
        found.append(outcome.log.file)
    return found


def files_in_job(spec: JobSpec) -> list[FileRef]:
    """The stored files that a job needs: its inputs, wherever they are said to come from, its code, and the
    description of its software."""
    return once(_named_in_job(spec))


def logical_files_in_job(spec: JobSpec) -> list[FileRef]:
    """The files with logical names that a job refers to, wherever they are said to come from."""
    return [each for each in (*spec.inputs.values(), *_named_in_job(spec)) if each.logical]


def files_read_by_job(spec: JobSpec) -> tuple[list[FileRef], list[FileRef]]:
    """The files with logical names that a job refers to, wherever they are said to come from, and the stored ones that
    it needs."""
    logical, stored = _by_kind(_named_in_job(spec))
    return [*(each for each in spec.inputs.values() if each.logical), *logical] if spec.inputs else logical, stored


def logical_sources_in_job(spec: JobSpec) -> set[str]:
    """The logical names that a job reads files by, whatever their contents."""
    sources = (each for sources in spec.replicas.values() for each in sources)
    return {each.removeprefix(LOGICAL_PREFIX) for each in sources if each.startswith(LOGICAL_PREFIX)}


def may_read_files(spec: JobSpec) -> bool:
    """Whether there is anything in a job that looks like a file that it reads."""
    function = spec.function
    if spec.inputs or spec.replicas or spec.software is not None:
        return True
    if function is not None and (function.code is not None or function.bundle is not None):
        return True
    return _may_refer(spec.args) or _may_refer(spec.kwargs)


def _named_in_job(spec: JobSpec) -> list[FileRef]:
    found: list[FileRef] = []
    if spec.inputs:
        found += [ref for path, ref in spec.inputs.items() if path not in spec.replicas or not ref.logical]
    for path, sources in spec.replicas.items():
        kept = (source.removeprefix(KEPT_PREFIX) for source in sources if source.startswith(KEPT_PREFIX))
        found += [FileRef(sha256=digest, bytes=0, name=path) for digest in kept]
    for given in (spec.args, spec.kwargs):
        if _may_refer(given):
            found += files_in_value(given)
    if spec.function is not None and spec.function.code is not None:
        found.append(spec.function.code)
    if spec.function is not None and spec.function.bundle is not None:
        found.append(spec.function.bundle)
    if spec.software is not None:
        found += spec.software.files.values()
    return found


def files_in_flow(part: Any) -> list[FileRef]:
    """The stored files that a flow names, in whatever part of it."""
    return once(_named_in_flow(part))


def logical_files_in_flow(part: Any) -> list[FileRef]:
    """The files with logical names that a flow refers to, in whatever part of it."""
    return [each for each in _named_in_flow(part) if each.logical]


def files_given(part: Any) -> tuple[list[FileRef], list[FileRef]]:
    """The files with logical names that somebody gives, and the stored ones."""
    return _by_kind(_named_in_flow(part))


def _by_kind(found: list[FileRef]) -> tuple[list[FileRef], list[FileRef]]:
    """Those with logical names, and the stored ones, each once. Most jobs and outcomes have none."""
    return ([each for each in found if each.logical], once(found)) if found else ([], [])


def _named_in_flow(part: Any) -> list[FileRef]:
    found: list[FileRef] = []
    pending: list[Any] = [part] if _may_refer(part) else []
    while pending:
        each = pending.pop()
        if isinstance(each, FileRef):
            found.append(each)
        elif isinstance(each, msgspec.Struct):
            pending.extend(getattr(each, name) for name in each.__struct_fields__)
        elif isinstance(each, dict):
            found += files_of_map(each)
            pending.extend(each.values())
        elif isinstance(each, (list, tuple)):
            pending.extend(each)
    return found


def files_of_work(work: SentWork, flow: Flow) -> list[FileRef]:
    """The stored files that a piece of work refers to, whatever it says of them itself; `flow` is what it is run as."""
    found = files_in_flow(work.inputs)
    if work.job is not None:
        found += files_in_job(work.job)
    elif bytes(work.flow):
        found += files_in_flow(flow)
    return once([*found, *work.files])


def once(files: list[FileRef]) -> list[FileRef]:
    found: dict[str, FileRef] = {}
    for each in files:
        if not each.logical:
            found.setdefault(each.sha256, each)
    return list(found.values())
