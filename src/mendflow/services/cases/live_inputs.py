"""How much memory the inputs of a project's live cases take, and how much they may.

A case that waits for days keeps what it was given in memory, so whoever starts many with much would take all of it. It
is estimated once when a case begins or is loaded. What was admitted stays: a case that is loaded is never refused, nor
is one that mends another."""

from typing import Final

from mendflow.core.model.errors import QuotaExceeded
from mendflow.core.model.ids import CaseId
from mendflow.core.model.projects import LIVE_INPUTS_BYTES
from mendflow.core.model.values import memory_of
from mendflow.services.cases.live_case import CaseDocument

COUNTED_FROM_BYTES: Final = 16_384
"""A case takes about as much for itself, so one that was given less is neither counted nor refused."""


class LiveInputs:
    """`bytes_max` are those of one project on this server; 0: any number."""

    def __init__(self, bytes_max: int = LIVE_INPUTS_BYTES) -> None:
        self._most = bytes_max
        self._cases: dict[CaseId, tuple[str, int]] = {}
        self._projects: dict[str, int] = {}

    def of(self, project: str) -> int:
        return self._projects.get(project, 0)

    def admit(self, document: CaseDocument) -> None:
        """Count a case that is about to begin. Refused if there is no room for what it was given."""
        if not self._most:
            return
        project, size = document.counted_project, memory_of(document.inputs)
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
            self._count(document, memory_of(document.inputs))

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


def _mb(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
