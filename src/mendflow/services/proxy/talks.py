"""The conversations that went wrong, in memory and as documents.

A job that runs well has no conversation here: what was said of it is known from how it was submitted. One is begun when
something fails, and written when somebody mends it. A document is never taken away: after a crash it says which
submission is the newest, and a flow that has heard of the end no longer asks."""

import msgspec

from mendflow.core.model.ids import CaseId, JobId
from mendflow.core.recovery.conversation import Conversation
from mendflow.services.ledger import Ledger
from mendflow.stores.contract import Store

CONVERSATION_KIND = "conversation"
_decode = msgspec.json.Decoder(Conversation).decode


class Talks:
    def __init__(self, store: Store, ledger: Ledger) -> None:
        self._store = store
        self._ledger = ledger
        self.open: dict[JobId, Conversation] = {}
        self._read: set[CaseId] = set()

    def get(self, job: JobId) -> Conversation | None:
        return self.open.get(job)

    def note(self, talk: Conversation) -> None:
        """In memory: it need not survive."""
        self.open[talk.job] = talk

    def keep(self, talk: Conversation) -> None:
        """In memory and on disk."""
        self.open[talk.job] = talk
        self._ledger.touch(CONVERSATION_KIND, talk.job, talk)

    def close(self, job: JobId) -> Conversation | None:
        """Nobody waits for this job any more."""
        talk = self.open.pop(job, None)
        if talk is not None:
            self._ledger.leave(CONVERSATION_KIND, job)
        return talk

    async def take_up(self, case: CaseId, job: JobId) -> Conversation | None:
        """The conversation of a job that was submitted before a crash. All of a case are read at once."""
        if case not in self._read:
            self._read.add(case)
            async for found in self._store.scan(CONVERSATION_KIND, f"{case}/"):
                self._ledger.known(CONVERSATION_KIND, found.id, found.version)
                talk = _decode(found.body)
                self.open.setdefault(talk.job, talk)
        return self.open.get(job)

    async def look_up(self, job: JobId) -> Conversation | None:
        """The conversation of a job, also one that is over."""
        talk = self.open.get(job)
        if talk is None:
            await self._ledger.settled()
            found = await self._store.get(CONVERSATION_KIND, job)
            talk = _decode(found.body) if found is not None else None
        return talk
