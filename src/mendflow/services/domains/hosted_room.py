"""How much of what a domain may have here it has: pieces of work, and bytes of files. What is being taken counts, and
so do files that were asked for, and that have come for work which was not taken yet. Sizes are those of the stored
files; of a file that is still to come it is what the origin says, and no more than that is taken."""

from collections.abc import Collection, Mapping
from typing import Final

from mendflow.core.model.domains import DomainRights
from mendflow.core.model.errors import Forbidden
from mendflow.core.model.ids import Instant
from mendflow.services.base.contracts import Clock, FileStore
from mendflow.services.domains.hosted_register import HostedRegister

ASKED_MS: Final = 3_600_000
"""How long a file is waited for that its origin was not asked for again, and counts if it has come for nothing."""

DELIVERED_MAX: Final = 200_000
"""So many files are remembered as delivered by a domain; then the oldest are forgotten, and asked for again."""


class AskedFile:
    """A file that a domain was asked for, as large as it says; `ids` is the work that needs it, by who has sent it."""

    __slots__ = ("asked_at", "bytes", "ids")

    def __init__(self, bytes: int) -> None:
        self.bytes = bytes
        self.asked_at: Instant = 0
        self.ids: set[tuple[str, str]] = set()


class HostedRoom:
    def __init__(self, register: HostedRegister, files: FileStore, clock: Clock) -> None:
        self._register = register
        self._files = files
        self._clock = clock
        self._taking: dict[str, dict[str, int]] = {}  # by origin and id: the bytes of work that is being taken
        self._asked: dict[str, dict[str, AskedFile]] = {}  # by origin and digest
        self._delivered: dict[str, dict[str, None]] = {}  # by origin: digests of files that it has sent to this server

    def reserve(self, origin: str, id: str, rights: DomainRights, sizes: Mapping[str, int]) -> None:
        """Make room for a piece of work, until it is released. Refused with a reason if there is none."""
        taking = self._taking.get(origin, {})
        before = self._register.works.get(id)
        if self._register.count(origin) - (before is not None) + len(taking) >= rights.work_max:
            raise Forbidden(f"your domain has {rights.work_max} pieces of work here, and may have no more")
        size = sum(sizes.values())
        if size:
            held = self._register.bytes_of(origin) - (before.document.bytes if before is not None else 0)
            asked = sum(each.bytes for digest, each in self._asked.get(origin, {}).items() if digest not in sizes)
            if held + asked + sum(taking.values()) + size > rights.bytes_max:
                raise Forbidden(
                    f"with its files your domain would have more than the {rights.bytes_max} bytes here that it may"
                    " have"
                )
        self._taking.setdefault(origin, {})[id] = size

    def is_exceeded(self, origin: str, rights: DomainRights) -> bool:
        """Whether a domain has more here than it may have: several servers have taken work of it at the same time."""
        return self._register.count(origin) > rights.work_max or self._register.bytes_of(origin) > rights.bytes_max

    def release(self, origin: str, id: str) -> None:
        """The work is in the register, or was not taken."""
        taking = self._taking.get(origin, {})
        taking.pop(id, None)
        if not taking:
            self._taking.pop(origin, None)

    def ask(self, origin: str, sender: str, id: str, sizes: Mapping[str, int]) -> None:
        """Keep room for the files of a piece of work, some of which are missing."""
        asked = self._asked.setdefault(origin, {})
        for digest, size in sizes.items():
            each = asked.setdefault(digest, AskedFile(size))
            each.bytes, each.asked_at = size, self._clock.now()
            each.ids.add((sender, id))

    def settle_files(self, origin: str, digests: Collection[str]) -> None:
        """These files belong to work that was taken."""
        asked = self._asked.get(origin, {})
        for digest in digests:
            asked.pop(digest, None)
        if not asked:
            self._asked.pop(origin, None)

    async def tidy(self, origin: str, sender: str, ids: Collection[str]) -> None:
        """A server of the origin still has this work; files that were asked for because of other work of it are wanted
        no longer. Those that have come nevertheless count for a while."""
        asked, old_at = self._asked.get(origin), self._clock.now() - ASKED_MS
        if asked is None:
            return
        for digest, each in list(asked.items()):
            each.ids -= {of for of in each.ids if of[0] == sender and of[1] not in ids}
            if each.asked_at < old_at or (not each.ids and await self._files.size(digest) is None):
                asked.pop(digest, None)
        if not asked:
            self._asked.pop(origin, None)

    def forget(self, origin: str) -> None:
        self._asked.pop(origin, None)
        self._delivered.pop(origin, None)

    def deliver(self, origin: str, digest: str) -> None:
        delivered = self._delivered.setdefault(origin, {})
        delivered.pop(digest, None)
        delivered[digest] = None
        if len(delivered) > DELIVERED_MAX:
            del delivered[next(iter(delivered))]

    def is_delivered(self, origin: str, digest: str) -> bool:
        return digest in self._delivered.get(origin, ())

    def file_bytes_max(self, origin: str, digest: str) -> int | None:
        """How large a file may be that a domain was asked for; None if it was not."""
        each = self._asked.get(origin, {}).get(digest)
        return each.bytes if each is not None and each.ids else None
