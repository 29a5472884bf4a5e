"""Which of several servers does what any of them could: the same one for the same thing, as long as it lives.

Each works it out for itself from who lives. While they disagree, two may do the same, or none for a moment; so this is
only for what may be done twice, and waits."""

import hashlib

from mendflow.services.base.membership import OwnMembership


class Responsibility:
    def __init__(self, membership: OwnMembership) -> None:
        self._membership = membership

    def mine(self, what: str) -> bool:
        if not self._membership.may_promise():
            return False
        servers = {self._membership.id, *(each.id for each in self._membership.living())}
        return self._membership.id == max(servers, key=lambda id: hashlib.sha256(f"{id}\0{what}".encode()).digest())
