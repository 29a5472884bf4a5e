"""Chooses one of several servers for a task that any of them could do: always the same one while it is alive.

Each server computes the choice from the list of live servers. While their lists differ, two may do the same task, or
none for a moment; so this is only for tasks that may be done twice, and late."""

import hashlib
from collections.abc import Callable

from mendflow.services.base.cluster import ServerDocument
from mendflow.services.base.membership import OwnMembership


class Responsibility:
    """`does`: which of the other servers do such tasks at all. Whoever asks does them itself."""

    def __init__(self, membership: OwnMembership, does: Callable[[ServerDocument], bool] = lambda _: True) -> None:
        self._membership = membership
        self._does = does

    def mine(self, what: str) -> bool:
        if not self._membership.may_promise():
            return False
        servers = {self._membership.id, *(each.id for each in self._membership.live_servers() if self._does(each))}
        return self._membership.id == max(servers, key=lambda id: hashlib.sha256(f"{id}\0{what}".encode()).digest())
