"""The conversations of jobs that failed, in memory and as documents.

A job that runs well has no conversation here: its messages are known from how it was submitted. A conversation begins
when something fails, and is written when the job is mended. A document is never deleted: after a crash it says which
submission is the newest. A finished conversation stays on disk, and is read only if a flow asks again because it had
not recorded the outcome."""

import msgspec
from msgspec.structs import replace

from mendflow.core.model.ids import CaseId, JobId
from mendflow.core.recovery.conversation import Conversation
from mendflow.services.base.ledger import Ledger
from mendflow.stores.contract import Store

CONVERSATION_KIND = "conversation"
_decode = msgspec.json.Decoder(Conversation).decode


class ConversationStore:
    def __init__(self, store: Store, ledger: Ledger) -> None:
        self._store = store
        self._ledger = ledger
        self.open: dict[JobId, Conversation] = {}
        self._kept: set[JobId] = set()  # of these, which have a document
        self._read: set[CaseId] = set()
        self._over: set[JobId] = set()  # finished ones, of cases that were loaded

    def get(self, job: JobId) -> Conversation | None:
        return self.open.get(job)

    def note(self, talk: Conversation) -> None:
        """Keep it in memory only: it need not survive."""
        self.open[talk.job] = talk

    def keep(self, talk: Conversation) -> None:
        """In memory and on disk."""
        self.open[talk.job] = talk
        self._kept.add(talk.job)
        self._ledger.touch(CONVERSATION_KIND, talk.job, talk)

    def close(self, job: JobId) -> Conversation | None:
        """Nobody waits for this job any more."""
        talk = self.open.pop(job, None)
        if talk is not None and job in self._kept:
            self._kept.discard(job)
            if talk.case in self._read:
                self._over.add(job)  # the case may be reopened, and asks for it again then
            self._ledger.touch(CONVERSATION_KIND, job, replace(talk, over=True), last=True)
        return talk

    async def take_up(self, case: CaseId, job: JobId) -> Conversation | None:
        """The conversation of a job that was submitted before a crash. Those of a case are read together."""
        if case not in self._read:
            self._read.add(case)
            async for found in self._store.scan(CONVERSATION_KIND, f"{case}/"):
                talk = _decode(found.body)
                if talk.over:
                    self._over.add(talk.job)
                else:
                    self._reopen(talk, found.version)
        if job in self._over and job not in self.open:
            again = await self._store.get(CONVERSATION_KIND, job)
            assert again is not None, f"the conversation of {job} was there"
            self._reopen(replace(_decode(again.body), over=False), again.version)
        return self.open.get(job)

    def _reopen(self, talk: Conversation, version: int) -> None:
        if talk.job not in self.open:
            self._ledger.known(CONVERSATION_KIND, talk.job, version)
            self._kept.add(talk.job)
            self.open[talk.job] = talk

    async def look_up(self, job: JobId) -> Conversation | None:
        """The conversation of a job, also a finished one."""
        talk = self.open.get(job)
        if talk is None:
            await self._ledger.settled()
            found = await self._store.get(CONVERSATION_KIND, job)
            talk = _decode(found.body) if found is not None else None
        return talk
