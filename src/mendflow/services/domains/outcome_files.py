"""The files of an outcome that another domain tells of, as its origin takes them. A digest alone opens no file: one
that was not sent with the work is accepted only when the host has delivered its content, even if a file with this
content is here. Otherwise a host could name a private file of ours, and get it with the next work that uses the
outcome.

A logical name opens none either: it means what the catalogue of the origin says, so an outcome may refer to it only
with the content that it has there, and the outcome of a job only if the job has to do with it."""

from collections.abc import Collection

from msgspec.structs import replace

from mendflow.core.model.data import LOGICAL_PREFIX
from mendflow.core.model.domains import SentWork
from mendflow.core.model.errors import Forbidden, InvalidRequest, NotFound
from mendflow.core.model.jobs import JobSpec, Outcome
from mendflow.core.model.values import FileRef
from mendflow.services.base.contracts import Clock, FileStore
from mendflow.services.cases.staging import Resolve
from mendflow.services.domains.domain_lines import DomainLine
from mendflow.services.domains.file_transfers import fetch_file
from mendflow.services.domains.work_files import (
    files_in_outcome,
    files_in_value,
    logical_files_in_job,
    logical_files_in_outcome,
)


class ForeignName(Forbidden):
    """An outcome has a logical name that it must not have."""


async def demand_known_names(outcome: Outcome, work: SentWork | None, resolve: Resolve) -> None:
    """Refuse an outcome with a logical name that our catalogue does not have, or has with another content, or that is
    none of the job's."""
    own = _names_of(work.job) if work is not None and work.job is not None else None
    for ref in logical_files_in_outcome(outcome):
        name = ref.logical[:200]
        if own is not None and ref.logical.removeprefix(LOGICAL_PREFIX) not in own:
            raise ForeignName(
                f"its outcome refers to the logical file {name!r}, which the job neither reads nor publishes"
            )
        try:
            known = await resolve(ref.logical)
        except (NotFound, InvalidRequest) as error:
            raise ForeignName(
                f"its outcome refers to the logical file {name!r}, which this domain does not have: {error.message}"
            ) from None
        if ref.sha256 != known.sha256 or ref.bytes not in (0, known.bytes):
            raise ForeignName(
                f"its outcome refers to the logical file {name!r} with the digest {ref.sha256[:12]}... and {ref.bytes}"
                " bytes, which is not what has that name in this domain"
            )


def _names_of(job: JobSpec) -> set[str]:
    read = {each.logical for each in logical_files_in_job(job)}
    published = {each.logical for each in job.publish.values()}
    return {name.removeprefix(LOGICAL_PREFIX) for name in read | published}


class OutcomeFiles:
    """The files of one outcome. `sent` are the digests of those that went with the work; the others have at most
    `bytes_max` bytes together. `source` is whose outcome it is."""

    def __init__(
        self, outcome: Outcome, sent: Collection[str], bytes_max: int, *, files: FileStore, clock: Clock, source: str
    ) -> None:
        self._wanted = files_in_outcome(outcome)
        self._sent = sent
        self._bytes_max = bytes_max
        self._files = files
        self._clock = clock
        self._source = source
        self._fetched: dict[str, int] = {}  # the bytes of what has come, by digest

    async def fetch(self, line: DomainLine) -> None:
        """Fetch what is still missing. May be called again after it was `Unreachable`."""
        missing = [each for each in self._wanted if not await self._is_here(each.sha256)]
        if sum(max(0, each.bytes) for each in missing) > self._bytes_left():
            raise Forbidden(f"they have more than the {self._bytes_max} bytes that the domain may bring here")
        for ref in missing:
            said = max(0, ref.bytes)
            bytes_max = min(said, self._bytes_left()) if said else self._bytes_left()
            kept = await fetch_file(line, ref, bytes_max, files=self._files, clock=self._clock, source=self._source)
            self._fetched[ref.sha256] = kept.bytes

    async def _is_here(self, digest: str) -> bool:
        return digest in self._fetched or (digest in self._sent and await self._files.size(digest) is not None)

    def _bytes_left(self) -> int:
        return max(0, self._bytes_max - sum(self._fetched.values()))

    def without_foreign(self, outcome: Outcome) -> Outcome:
        """The outcome without what it tells beside its outputs, if that refers to files which are not among those of
        the work and of the outcome."""
        known = {*self._sent, *(each.sha256 for each in self._wanted)}
        fault = outcome.fault

        def is_foreign(each: FileRef) -> bool:
            return bool(each.logical) or each.sha256 not in known

        if any(map(is_foreign, files_in_value(outcome.values))):
            outcome = replace(outcome, values={})
        if fault is not None and any(map(is_foreign, files_in_value(fault.data))):
            outcome = replace(outcome, fault=replace(fault, data=None))
        return outcome
