"""Why files could not be brought to a job or taken from it, each as a fault that rules can act upon."""

import errno

import msgspec

from mendflow.core.model.data import LOGICAL
from mendflow.core.model.faults import Category, Fault, Stage
from mendflow.pilot.http import ServerRefused
from mendflow.pilot.sources import digest_in
from mendflow.pilot.verdicts import NO_ROOM, full_disk
from mendflow.transfer.addresses import shown

WRONG_PLACE = frozenset({errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENAMETOOLONG, errno.EINVAL})
"""What the system says when paths of a job contradict each other, or cannot be."""


class StagingFailed(Exception):
    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


def missing(path: str, sources: tuple[str, ...], reason: str) -> Fault:
    """An input that could not be had. No password stands in it, nor what a query may carry: a repair that chooses
    another source finds them in the job itself."""
    what = f"input {path}" if path else "an argument"
    rest = [shown(each) for each in sources[1:]]
    others = f"; it may also be had from {', '.join(rest)}" if rest else ""
    return Fault(
        name="missingInput",
        category=Category.DATA,
        message=f"{what} could not be had from {_short(sources[0])}: {reason}{others}",
        stage=Stage.STAGE_IN,
        file=path,
        data={"source": shown(sources[0]), "others": rest, "reason": reason},
    )


def _short(source: str) -> str:
    if source.startswith(LOGICAL):
        return f"where the catalogue has {source.removeprefix(LOGICAL)}"
    return f"the server ({digest_in(source)[:12]})" if digest_in(source) else shown(source)


def wrong(name: str, text: str, path: str = "") -> Fault:
    return Fault(name=name, category=Category.INPUT, message=text, stage=Stage.STAGE_IN, file=path)


def not_kept(path: str, error: OSError | ServerRefused) -> Fault:
    text = f"the job ended well, but its files could not be kept: {error}"
    data = {"reason": str(error)}
    return Fault(name="notKept", category=Category.OUTPUT, message=text, stage=Stage.STAGE_OUT, file=path, data=data)


def not_published(path: str, logical: str, element: str, reason: str, *, passing: bool = False) -> Fault:
    """`passing`: the place may be written to at another time. What has no logical name goes to a URL of its own."""
    text = f"the job ended well, but {path} could not be " + (f"published as {logical}" if logical else "taken away")
    return Fault(
        name="notPublished",
        category=Category.OUTPUT,
        message=f"{text} on {element}: {reason}" if element else f"{text}: {reason}",
        stage=Stage.STAGE_OUT,
        file=path,
        data={"logical": logical, "element": element, "reason": reason, "passing": passing},
    )


def fault_of(error: OSError | StagingFailed, folder: str, path: str) -> Fault:
    """What came in the way of putting files into their places: the disk, the job's own paths, or the place."""
    if isinstance(error, StagingFailed):
        return error.fault
    full = full_disk(folder, str(error), stage=Stage.STAGE_IN, known=error.errno in NO_ROOM)
    if full is not None:
        return msgspec.structs.replace(full, file=path)
    if path and error.errno in WRONG_PLACE:
        return wrong("badPath", f"{path} cannot be put into the job's folder: {error}", path)
    return Fault(
        name="cannotStage",
        category=Category.RESOURCE,
        message=f"the pilot could not put the job's files in place: {error}",
        stage=Stage.STAGE_IN,
        file=path,
        data={"errno": errno.errorcode.get(error.errno or 0, "")},
    )
