"""One simulated attempt: inputs are fetched, it computes, its files are stored.

Each phase is one timer. Run time and output files are drawn first, so that the attempt does the same wherever its
inputs come from. A failed access to a storage element ends the attempt with the fault that a real pilot gives."""

import asyncio
import hashlib
from collections.abc import Callable

import msgspec

from mendflow.core.model.faults import Fault
from mendflow.core.model.ids import JobId, PilotId
from mendflow.core.model.jobs import JobSpec, Measurements, Outcome, sources_of
from mendflow.core.model.values import FileRef
from mendflow.pilot.files.staging_faults import missing_input_fault, upload_fault
from mendflow.sim.grid.caches import VirtualCache
from mendflow.sim.grid.context import GridContext
from mendflow.sim.grid.elements import access
from mendflow.sim.grid.results import JobRecord
from mendflow.sim.grid.scene import SiteScene
from mendflow.sim.machines import BEGINNING

INTERRUPTED_TRANSFER = "the storage element broke off"


class AttemptLocation(msgspec.Struct, frozen=True):
    """Where attempts run."""

    site: SiteScene
    host: str
    pilot: PilotId
    cache: VirtualCache | None = None


class ReadCounts(msgspec.Struct, gc=False):
    own_files: int = 0
    own_bytes: int = 0
    shared_files: int = 0
    shared_bytes: int = 0
    fetched_files: int = 0
    fetched_bytes: int = 0


class SimulatedAttempt:
    """`on_end` is called when the attempt has ended by itself; `outcome` then is what it came to."""

    __slots__ = (
        "_begun_s",
        "_chance",
        "_computed_s",
        "_context",
        "_fault",
        "_fetched",
        "_granted_s",
        "_left_s",
        "_location",
        "_on_end",
        "_out",
        "_reads",
        "_stage_in_s",
        "_timer",
        "_until_s",
        "_work",
        "fence",
        "job",
        "outcome",
        "spec",
        "state",
    )  # fmt: skip

    def __init__(
        self,
        context: GridContext,
        location: AttemptLocation,
        job: JobId,
        fence: int,
        spec: JobSpec,
        on_end: Callable[["SimulatedAttempt"], None],
    ) -> None:
        self.job = job
        self.fence = fence
        self.spec = spec
        self.state = "held"
        self.outcome: Outcome | None = None
        self._context = context
        self._location = location
        self._on_end = on_end
        self._granted_s = context.now_s
        self._begun_s = 0.0
        self._until_s = 0.0
        self._computed_s = 0.0
        self._stage_in_s = 0.0
        self._left_s = 0.0
        self._reads = ReadCounts()
        self._fetched: list[tuple[FileRef, float]] = []
        self._fault: Fault | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def host(self) -> str:
        return self._location.host

    # phases

    def begin(self) -> None:
        context, spec = self._context, self.spec
        context.attempts_running += 1
        self._chance = context.chance(self.job, self.fence)
        self._work = context.job_model.of(spec, self._chance)
        self._out = self._stage_out()
        self.state = "staging"
        if not spec.inputs:
            self._staged()
            return
        seconds = self._stage_in()
        if self._location.cache is not None:
            self._location.cache.pin(file.sha256 for file in spec.inputs.values())
        self._enter(seconds, self._staged)

    def _staged(self) -> None:
        now = self._context.now_s
        self._stage_in_s, self._begun_s = now - self._granted_s, now
        if self._location.cache is not None:
            self._arrive(self._location.cache)
        if self._fault is not None:
            self._end()
            return
        self.state = "running"
        overhead_s = self._location.site.overhead_s + self._context.start_delay_s()
        self._enter(self._work.seconds + overhead_s, self._computed)

    def _computed(self) -> None:
        self._computed_s = self._context.now_s
        self._fault = self._work.fault
        if self._fault is not None or not self._work.files:
            self._end()
            return
        self.state = "keeping"
        seconds, self._fault = self._out
        self._enter(seconds, self._end)

    def _enter(self, seconds: float, then: Callable[[], None]) -> None:
        self._until_s = self._context.now_s + seconds
        self._timer = self._context.after(seconds, then)

    def _end(self) -> None:
        self._timer = None
        files = {} if self._fault is not None else self._made()
        if files and self._location.cache is not None:
            for file in files.values():
                self._location.cache.take_in(file.sha256, file.bytes, self._context.now_s - self._computed_s)
        self._close(self._fault.name if self._fault is not None else "")
        self.outcome = Outcome(
            fault=self._fault,
            outputs=self._work.outputs if self._fault is None else None,
            files={name: ref for name, ref in files.items() if name not in self.spec.file_lists},
            file_lists={name: [ref] for name, ref in files.items() if name in self.spec.file_lists},
            exit_code=0 if self._fault is None else None,
            measures=self._measures(),
        )
        self._on_end(self)

    # files

    def _stage_in(self) -> float:
        """Locate each input; compute how long it takes until all are here, or one fails."""
        at_once, total, longest, broken = self.spec.stage_in == "parallel", 0.0, 0.0, float("inf")
        for path, file in self.spec.inputs.items():
            seconds, fails = self._bring(file)
            if fails and seconds < broken:
                broken, self._fault = (
                    seconds,
                    missing_input_fault(path, sources_of(self.spec, path), INTERRUPTED_TRANSFER),
                )
            total, longest = total + seconds, max(longest, seconds)
            if fails and not at_once:
                return total
        return min(longest, broken) if at_once else total

    def _bring(self, file: FileRef) -> tuple[float, bool]:
        site, cache, counted = self._location.site, self._location.cache, self._reads
        where = cache.find(file.sha256) if cache is not None else "element"
        if cache is not None and where == "own":
            counted.own_files += 1
            counted.own_bytes += file.bytes
            return cache.wait_s(file.sha256) + file.bytes / site.disk_bytes_per_s, False
        if where == "element":
            counted.fetched_files += 1
            counted.fetched_bytes += file.bytes
            seconds, fails = access(site.element, file.bytes, self._chance)
        else:
            counted.shared_files += 1
            counted.shared_bytes += file.bytes
            speed = site.disk_bytes_per_s if where == "host" else site.site_bytes_per_s
            seconds, fails = file.bytes / speed, False
        if not fails:
            self._fetched.append((file, seconds))
            if cache is not None:
                cache.expect(file.sha256, seconds)
        return seconds, fails

    def _arrive(self, cache: VirtualCache) -> None:
        """Keep the files that have arrived so far, whatever happened to the rest."""
        for file, seconds in self._fetched:
            if self._fault is None or seconds <= self._stage_in_s:
                cache.take_in(file.sha256, file.bytes, seconds)
            else:
                cache.expect(file.sha256, 0.0)

    def _stage_out(self) -> tuple[float, Fault | None]:
        """How long storing its files takes, in parallel; the first that cannot be stored ends it."""
        longest, broken, fault = 0.0, float("inf"), None
        for name, bytes in self._work.files.items():
            seconds, fails = access(self._location.site.element, bytes, self._chance)
            longest = max(longest, seconds)
            if fails and seconds < broken:
                broken, fault = seconds, upload_fault(self.spec.files.get(name, name), OSError(INTERRUPTED_TRANSFER))
        return min(longest, broken), fault

    def _made(self) -> dict[str, FileRef]:
        return {
            name: FileRef(
                sha256=hashlib.sha256(f"{self.job}\n{name}".encode()).hexdigest(),
                bytes=bytes,
                name=self.spec.files.get(name, name).rpartition("/")[2],
            )
            for name, bytes in self._work.files.items()
        }

    # control

    def suspend(self) -> None:
        if self.state == "running" and self._timer is not None:
            self._timer.cancel()
            self._left_s = self._until_s - self._context.now_s
            self.state = "suspended"

    def resume(self) -> None:
        if self.state == "suspended":
            self.state = "running"
            self._enter(self._left_s, self._computed)

    def stop(self, why: str) -> None:
        """End it from outside, without reporting an outcome."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self.state != "held":
            if not self._begun_s:
                self._begun_s = self._context.now_s
            self._close(why)

    # observation

    def _close(self, fault: str) -> None:
        context, location, counted, now = self._context, self._location, self._reads, self._context.now_s
        context.attempts_running -= 1
        if self.spec.inputs and location.cache is not None:
            location.cache.release(file.sha256 for file in self.spec.inputs.values())
        computed = self._computed_s if self.state == "keeping" else now
        context.records.append(
            JobRecord(
                job=self.job,
                item=self.spec.item,
                case=self.job.partition("/")[0],
                site=location.site.name,
                host=location.host,
                pilot=location.pilot,
                attempt=self.fence,
                granted_s=self._granted_s,
                begun_s=self._begun_s,
                ended_s=now,
                stage_in_s=self._stage_in_s,
                run_s=computed - self._begun_s,
                stage_out_s=now - computed,
                well=not fault,
                fault=fault,
                own_files=counted.own_files,
                shared_files=counted.shared_files,
                fetched_files=counted.fetched_files,
                own_bytes=counted.own_bytes,
                shared_bytes=counted.shared_bytes,
                fetched_bytes=counted.fetched_bytes,
                project=self.spec.project,
                user=self.spec.account or self.spec.owner,
            )
        )

    def _measures(self) -> Measurements:
        counted, now = self._reads, self._context.now_s
        computed = self._computed_s if self.state == "keeping" else now
        return Measurements(
            started_at=BEGINNING + round(self._begun_s * 1000),
            ended_at=BEGINNING + round(computed * 1000),
            ran_ms=round((computed - self._begun_s) * 1000),
            cached_files=counted.own_files + counted.shared_files,
            cached_bytes=counted.own_bytes + counted.shared_bytes,
            shared_files=counted.shared_files,
            shared_bytes=counted.shared_bytes,
            fetched_files=counted.fetched_files,
            fetched_bytes=counted.fetched_bytes,
            stage_in_ms=round(self._stage_in_s * 1000),
            stage_out_ms=round((now - computed) * 1000),
        )
