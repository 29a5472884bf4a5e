"""Faults of staging: why files could not be fetched, stored or published, in terms that rules can act on."""

import errno

import msgspec

from mendflow.core.model.data import LOGICAL_PREFIX
from mendflow.core.model.faults import AttemptStage, Category, Fault
from mendflow.core.model.jobs import digest_in
from mendflow.pilot.slot.faults import NO_ROOM, full_disk_fault
from mendflow.transfer.addresses import shown

WRONG_PLACE = frozenset({errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENAMETOOLONG, errno.EINVAL})
"""Error numbers for paths of a job that conflict or are invalid."""


class StagingFailed(Exception):
    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


def missing_input_fault(path: str, sources: tuple[str, ...], reason: str, *, gone: bool = False) -> Fault:
    """An input that could not be fetched. The fault contains no passwords and no query strings: a repair that chooses
    another source finds them in the job itself. `gone`: the server has said that it does not have the file, or not
    whole; if there is no other source, waiting does not bring it back."""
    what = f"input {path}" if path else "an argument"
    rest = [shown(each) for each in sources[1:]]
    others = f"; it may also be had from {', '.join(rest)}" if rest else ""
    return Fault(
        name="missingInput",
        category=Category.DATA,
        message=f"{what} could not be had from {_short(sources[0])}: {reason}{others}",
        stage=AttemptStage.STAGE_IN,
        file=path,
        data={"source": shown(sources[0]), "others": rest, "reason": reason}
        | ({"lasting": True} if gone and digest_in(sources[0]) and not rest else {}),
    )


def _short(source: str) -> str:
    if source.startswith(LOGICAL_PREFIX):
        return f"where the catalogue has {source.removeprefix(LOGICAL_PREFIX)}"
    return f"the server ({digest_in(source)[:12]})" if digest_in(source) else shown(source)


def staging_fault(name: str, text: str, path: str = "") -> Fault:
    return Fault(name=name, category=Category.INPUT, message=text, stage=AttemptStage.STAGE_IN, file=path)


def upload_fault(path: str, error: Exception) -> Fault:
    text = f"the job succeeded, but its files could not be stored: {error}"
    data = {"reason": str(error)}
    return Fault(
        name="notKept", category=Category.OUTPUT, message=text, stage=AttemptStage.STAGE_OUT, file=path, data=data
    )


def publication_fault(
    path: str, logical: str, element: str, reason: str, *, passing: bool = False, lasting: bool = False
) -> Fault:
    """`passing`: a retry may succeed. `lasting`: nothing but another place will do. A file without a logical name goes
    to a URL of its own."""
    text = f"the job succeeded, but {path} could not be " + (f"published as {logical}" if logical else "taken away")
    return Fault(
        name="notPublished",
        category=Category.OUTPUT,
        message=f"{text} on {element}: {reason}" if element else f"{text}: {reason}",
        stage=AttemptStage.STAGE_OUT,
        file=path,
        data={"logical": logical, "element": element, "reason": reason, "passing": passing, "lasting": lasting},
    )


def fault_of(error: OSError | StagingFailed, folder: str, path: str) -> Fault:
    """The fault for an OSError while files are put in place: the disk, the job's own paths, or the source."""
    if isinstance(error, StagingFailed):
        return error.fault
    full = full_disk_fault(folder, str(error), stage=AttemptStage.STAGE_IN, known=error.errno in NO_ROOM)
    if full is not None:
        return msgspec.structs.replace(full, file=path)
    if path and error.errno in WRONG_PLACE:
        return staging_fault("badPath", f"{path} cannot be put into the job's folder: {error}", path)
    return Fault(
        name="cannotStage",
        category=Category.RESOURCE,
        message=f"the pilot could not put the job's files in place: {error}",
        stage=AttemptStage.STAGE_IN,
        file=path,
        data={"errno": errno.errorcode.get(error.errno or 0, "")},
    )


def unprepared_fault(error: Exception) -> Fault:
    """The pilot failed at something that it should have known how to tell."""
    return Fault(
        name="cannotStage",
        category=Category.RESOURCE,
        message=f"the pilot could not make the job ready: {type(error).__name__}: {error}",
        stage=AttemptStage.STAGE_IN,
    )
