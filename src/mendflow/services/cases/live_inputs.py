"""How much memory the inputs of a project's live cases take, and how much they may.

A case that waits for days keeps in memory what it was given, and those of its flow's defaults that it has in their
place, so whoever starts many with much would take all of it. It is estimated once when a case begins or is loaded. What
was admitted stays: a case that is loaded is never refused, nor is one that mends another.

People see with each case what it works on, also after its flow was changed. A flow may have any number of defaults, so
a case keeps small ones, up to a sum; the flow has the rest."""

from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from mendflow.core.model.errors import QuotaExceeded
from mendflow.core.model.flow import Flow
from mendflow.core.model.ids import CaseId
from mendflow.core.model.projects import LIVE_INPUTS_BYTES
from mendflow.core.model.values import Value, memory_of
from mendflow.services.cases.live_case import CaseDocument

COUNTED_FROM_BYTES: Final = 16_384
"""A case takes about as much for itself, so one whose inputs take less is neither counted nor refused."""

DEFAULT_BYTES_MAX: Final = 4 << 10
"""A larger default is not kept with a case."""

DEFAULTS_BYTES_MAX: Final = 16 << 10
"""Nor are those that would make more than this together."""


class LiveInputs:
    """`bytes_max` are those of one project on this server; 0: any number."""

    def __init__(self, bytes_max: int = LIVE_INPUTS_BYTES) -> None:
        self._most = bytes_max
        self._cases: dict[CaseId, tuple[str, int]] = {}
        self._projects: dict[str, int] = {}

    def of(self, project: str) -> int:
        return self._projects.get(project, 0)

    def admit(self, document: CaseDocument) -> None:
        """Count a case that is about to begin. Refused if there is no room for its inputs."""
        if not self._most:
            return
        project, size = document.counted_project, _memory_of(document)
        held = self.of(project)
        if project and size >= COUNTED_FROM_BYTES and held + size > self._most:
            raise QuotaExceeded(
                f"the inputs of {document.flow} would take about {_mb(size)} of memory while the case lives, and those"
                f" of the live cases of project {project} take {_mb(held)} of {_mb(self._most)} already; give large"
                " values as files, or wait until some cases have ended",
                project=project,
                quota="live-inputs",
                used=held,
                limit=self._most,
            )
        self._count(document, size)

    def add(self, document: CaseDocument) -> None:
        """Count a case that was loaded."""
        if self._most:
            self._count(document, _memory_of(document))

    def remove(self, case: CaseId) -> None:
        project, size = self._cases.pop(case, ("", 0))
        if left := self.of(project) - size:
            self._projects[project] = left
        else:
            self._projects.pop(project, None)

    def _count(self, document: CaseDocument, size: int) -> None:
        self.remove(document.id)
        project = document.counted_project
        if project and size >= COUNTED_FROM_BYTES:
            self._cases[document.id] = project, size
            self._projects[project] = self.of(project) + size


def _memory_of(document: CaseDocument) -> int:
    """Defaults belong to the flow at first, but a case that is loaded has its own."""
    return memory_of(document.inputs) + (memory_of(document.defaults) if document.defaults else 0)


def _mb(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"


class SmallDefault(NamedTuple):
    value: Value
    size: int  # of its JSON, its name included, in bytes


def small_defaults(flow: Flow) -> dict[str, SmallDefault]:
    """The defaults that a case may keep. To measure them takes as long as they are large, so it is done once a flow."""
    found = {
        name: SmallDefault(each.default, len(msgspec.json.encode({name: each.default})))
        for name, each in flow.inputs.items()
        if each.default is not None
    }
    return {name: each for name, each in found.items() if each.size <= DEFAULT_BYTES_MAX}


def kept_defaults(small: Mapping[str, SmallDefault], given: Mapping[str, Value]) -> dict[str, Value]:
    """Those of inputs that the case was not given, in the flow's order, as far as there is room."""
    kept, left = dict[str, Value](), DEFAULTS_BYTES_MAX
    for name, each in small.items():
        if name not in given and each.size <= left:
            kept[name] = each.value
            left -= each.size
    return kept


def defaults_of(flow: Flow, given: Mapping[str, Value]) -> dict[str, Value]:
    """What a case of the flow keeps for the inputs that it was not given."""
    return kept_defaults(small_defaults(flow), given)
