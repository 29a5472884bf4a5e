"""What a server knows of its own membership among the servers on one store, and the membership of a server that is
alone. cluster/membership has that of a server that shares its store."""

from typing import Final, Protocol

from mendflow.services.base.cluster import Membership, ServerDocument


class Promise(Protocol):
    """The right of one incarnation of a server to decide about its cases."""

    def holds(self) -> bool: ...
    async def renewed(self) -> bool:
        """Wait until it holds; false if it never will again, or not in time."""
        ...


class OwnMembership(Membership, Protocol):
    """What the server itself needs to know of its membership. `shared`: other servers may be on the store."""

    @property
    def shared(self) -> bool: ...
    @property
    def incarnation(self) -> str: ...
    def promise(self) -> Promise: ...
    def earlier_promises_ms(self) -> int | None:
        """For how long pilots may still count on the promises of earlier incarnations; None: unknown. To be asked once,
        before this incarnation promises anything."""
        ...

    async def beats(self, server: str) -> bool:
        """Whether another server is seen to be alive. Where nothing was seen of it but its document, its next heartbeat
        is waited for."""
        ...

    async def open(self) -> None: ...
    async def close(self) -> None: ...


class _UnlimitedPromise:
    def holds(self) -> bool:
        return True

    async def renewed(self) -> bool:
        return True


UNLIMITED_PROMISE: Final = _UnlimitedPromise()


class SingleServer:
    """A server that has its store for itself."""

    shared = False
    incarnation = ""

    def __init__(self) -> None:
        self.id = "alone"
        self._own_document = ServerDocument(id=self.id, url="")

    def may_promise(self) -> bool:
        return True

    def live_servers(self) -> list[ServerDocument]:
        return []

    def find(self, server: str) -> ServerDocument | None:
        return self._own_document if server == self.id else None

    def promise(self) -> Promise:
        return UNLIMITED_PROMISE

    def earlier_promises_ms(self) -> int | None:
        return None

    async def beats(self, server: str) -> bool:
        return False

    async def publish(self) -> None: ...
    async def open(self) -> None: ...
    async def close(self) -> None: ...
