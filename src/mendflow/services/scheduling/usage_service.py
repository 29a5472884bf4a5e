"""What projects and their users have used, for the fair share: counted by the server whose jobs ran, and told to the
others through the store.

Each server has one document, which it alone writes; what it says decays by the clock, so it need not be written while
nothing changes. Whoever uses nothing, and of whose usage nothing is left, is not in it any more. The document of a
server that is gone counts on until it has decayed. While there is one project and nothing is set, nothing is written:
whose turn it is does not depend on it."""

from typing import Final

import msgspec

from mendflow.core.model.ids import Instant, JobId
from mendflow.core.model.jobs import Job, JobState
from mendflow.core.scheduling.fair_share import DecayingUsage, FairShares, UsageTable
from mendflow.services.base.cluster import Membership
from mendflow.services.base.contracts import Clock
from mendflow.services.base.ledger import Ledger
from mendflow.services.scheduling.pilot_scheduler import PilotScheduler
from mendflow.stores.contract import Store

USAGE_KIND: Final = "project-usage"
TICK_MS: Final = 100
NEGLIGIBLE_CPU_MS: Final = 1000.0
"""The document of a server that is gone is removed when no more than this is left of all that it says."""


class UsageDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What the jobs of a server have used, by project and user: CPUs times milliseconds as of `at`, and CPUs in use."""

    server: str
    at: Instant
    used: dict[str, dict[str, tuple[float, float]]] = {}


_decode = msgspec.json.Decoder(UsageDocument).decode


class UsageService:
    def __init__(
        self, *, store: Store, ledger: Ledger, clock: Clock, meta: PilotScheduler, membership: Membership
    ) -> None:
        self._store = store
        self._ledger = ledger
        self._clock = clock
        self._meta = meta
        self._membership = membership
        self.shares: FairShares = meta.queue.shares
        self._charged: dict[JobId, tuple[str, str, float]] = {}  # project, user and CPUs of running jobs
        self._version = 0
        self._changed = False

    def job_moved(self, job: Job) -> bool:
        """Whether its project begins to use something."""
        if job.state is JobState.RUNNING:
            if job.id not in self._charged:
                self._begin(job)
                return True
        elif (charge := self._charged.pop(job.id, None)) is not None:
            project, user, cpus = charge
            self.shares.use(project, user, -cpus, self._tick())
            self._changed = True
        return False

    def _begin(self, job: Job) -> None:
        spec = job.spec
        charge = self._charged[job.id] = (spec.project, spec.account or spec.owner, spec.resources.cpus)
        self.shares.use(*charge, self._tick())
        self._changed = True

    def _tick(self) -> Instant:
        """The time, in steps: what changes within one step is added without decay."""
        now = self._clock.now()
        return now - now % TICK_MS

    @property
    def is_shared(self) -> bool:
        """Whether more than one project has used something."""
        return len(self.shares.own.totals) > 1 or bool(self.shares.others.totals)

    @property
    def is_changed(self) -> bool:
        """Whether something was used since it was last told, or is in use."""
        return self._changed or bool(self._charged)

    def projects(self) -> set[str]:
        return self.shares.projects()

    async def load(self) -> None:
        """Continue where the last run of this server ended. What its jobs have used meanwhile is not known."""
        found = await self._store.get(USAGE_KIND, self._membership.id)
        if found is not None:
            self._version = found.version
            _add(self.shares.own, _decode(found.body), self._clock.now(), self.shares.half_life_ms, runs=False)

    async def look(self) -> None:
        """Tell the others what was used here, and hear what was used there."""
        for id in [id for pilot in self._meta.pilots.values() for id in pilot.held]:
            job = self._meta.jobs.get(id)
            if job is not None and job.state is JobState.RUNNING and id not in self._charged:
                self._begin(job)  # it was loaded with its case
        if self._changed:
            await self._write()
        await self._read_others()

    async def _write(self) -> None:
        now, half_life_ms = self._clock.now(), self.shares.half_life_ms
        self.shares.own.forget(now, half_life_ms)
        used = {
            project: {user: (round(usage.value(now, half_life_ms), 1), usage.cpus) for user, usage in users.items()}
            for project, users in self.shares.own.users.items()
        }
        document = UsageDocument(server=self._membership.id, at=now, used=used)
        version = await self._ledger.put_now(USAGE_KIND, document.server, document, self._version)
        if version is None:  # an earlier run of this server wrote it a moment ago
            found = await self._store.get(USAGE_KIND, document.server)
            self._version = found.version if found is not None else 0
            return
        self._version, self._changed = version, False

    async def _read_others(self) -> None:
        others, now = UsageTable(), self._clock.now()
        async for found in self._store.scan(USAGE_KIND):
            if found.id == self._membership.id:
                continue
            document, lives = _decode(found.body), self._membership.find(found.id) is not None
            left = sum(each[0] for users in document.used.values() for each in users.values())
            half_lives = max(0, now - document.at) / self.shares.half_life_ms
            if not lives and left * 2.0**-half_lives < NEGLIGIBLE_CPU_MS:
                await self._ledger.put_now(USAGE_KIND, found.id, None, found.version)
            else:
                _add(others, document, now, self.shares.half_life_ms, runs=lives)
        others.forget(now, self.shares.half_life_ms)
        self.shares.others = others


def _add(table: UsageTable, document: UsageDocument, now: Instant, half_life_ms: int, *, runs: bool) -> None:
    for project, users in document.used.items():
        for user, (cpu_ms, cpus) in users.items():
            usage = DecayingUsage(cpu_ms, document.at, cpus if runs else 0.0)
            table.add(project, user, usage, now, half_life_ms)
