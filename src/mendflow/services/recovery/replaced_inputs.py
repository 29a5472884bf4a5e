"""Another file in place of an input of a job, as a repair names it.

A source that the job has already is only another place of the same content. Any other one is another file: the server
reads it before the job is submitted, so that a pilot looks for the new content, and not for the earlier one in its
cache. What a pilot is to fetch by itself, from a URL, the server does not read."""

from typing import Protocol

from msgspec.structs import replace

from mendflow.core.model.errors import Forbidden, InvalidRequest, NotFound
from mendflow.core.model.ids import CaseId
from mendflow.core.model.jobs import KEPT_PREFIX, JobSpec, sources_of
from mendflow.core.model.values import FileRef
from mendflow.services.base.contracts import Change
from mendflow.services.cases.live_case import LiveCase

ON_PILOTS = "; a path on the machines of the pilots is written as file:///PATH"


class FilesInPlace(Protocol):
    async def give(self, case: CaseId, by: CaseId, source: str | FileRef, folder: str, project: str) -> FileRef:
        """Give a file to a case in the name of the exlet `by`. Raises RequestError where it cannot be given."""
        ...


async def with_files_in_place(
    files: FilesInPlace, live: LiveCase, exlet: CaseId, spec: JobSpec, change: Change
) -> Change:
    """The change, with the files that its sources name. Raises InvalidRequest where one cannot be given."""
    wanted: dict[str, str | FileRef] = {**change.files}
    for path, source in change.sources.items():
        if path in spec.inputs and source not in sources_of(spec, path) and "://" not in source:
            wanted[path] = source
    found = {}
    for path, given in wanted.items():
        try:
            found[path] = await files.give(live.id, exlet, given, live.flow.folder, live.document.project)
        except (Forbidden, NotFound, InvalidRequest) as error:
            shown = given if isinstance(given, str) else given.name or given.sha256
            told = f"{spec.item} cannot get {shown:.200} as its input {path}: {error.message}"
            raise InvalidRequest(told + _hint(given), field=f"sources.{path}") from error
    left = {path: source for path, source in change.sources.items() if path not in found}
    return replace(change, sources=left, files=found)


def _hint(given: str | FileRef) -> str:
    if isinstance(given, str) and given.startswith(KEPT_PREFIX):
        return "; a stored file is given as a map with $file, as an upload answers it"
    return ON_PILOTS if isinstance(given, str) and given.startswith("/") else ""
