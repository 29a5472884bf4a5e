"""What is true of a scenario's world, whatever anybody believes of it: what jobs need, what is broken, and until when.

A trouble is data. Asked for an attempt, nature says how long it runs and how it ends, from the job's description, the
place and the moment alone; so each strategy meets the same world and gets what its own choices deserve."""

from typing import Any

import msgspec

from mendflow.core.model.faults import AttemptStage, Category, Fault
from mendflow.core.model.jobs import JobSpec, Measurements, Outcome, sources_of

GIB = 1 << 30


class FailingAttempts(msgspec.Struct, frozen=True, kw_only=True):
    """Attempts end with this fault after some seconds. It holds for all attempts, unless it says: for the first
    `times`, until the moment `until_s`, on some hosts, or as long as the input comes from `source`."""

    name: str
    category: Category
    message: str
    after_s: float = 5
    times: int | None = None
    until_s: float | None = None
    hosts: frozenset[str] = frozenset()
    source: str = ""
    stage: AttemptStage = AttemptStage.EXECUTION
    exit_code: int | None = None
    signal: int | None = None
    ended_well: bool = False  # the work was done, and what came after it failed

    def fault(self, spec: JobSpec) -> Fault:
        return Fault(
            name=self.name,
            category=self.category,
            message=self.message,
            exit_code=self.exit_code,
            signal=self.signal,
            stage=self.stage,
            **_about_input(spec, self.stage),
        )


def _about_input(spec: JobSpec, stage: AttemptStage) -> dict[str, Any]:
    """What a pilot says of an input that it could not have: which, from where, and where else it can be had."""
    if stage is not AttemptStage.STAGE_IN or not spec.replicas:
        return {}
    path = next(iter(spec.replicas))
    first, *others = sources_of(spec, path)
    return {"file": path, "data": {"source": first, "others": others, "reason": "not there"}}


class HostLoss(msgspec.Struct, frozen=True, kw_only=True):
    """A host goes, with all that runs on it, and comes back after a while, or never. With `again_s` it does so again
    and again, that long after each return."""

    host: str
    at_s: float
    back_s: float | None = None
    again_s: float | None = None


class SchedulerOutage(msgspec.Struct, frozen=True, kw_only=True):
    """A domain's meta-scheduler takes no jobs for a time, or never."""

    category: Category
    until_s: float | None = None
    from_s: float = 0
    domain: str = ""

    def holds(self, domain: str, now_s: float) -> bool:
        return domain == self.domain and self.from_s <= now_s and (self.until_s is None or now_s < self.until_s)


class LostMessages(msgspec.Struct, frozen=True, kw_only=True):
    """What the meta-scheduler has to say does not arrive: the first answers to polls, or callbacks, are lost."""

    what: str  # polls, callbacks
    times: int = 1


Trouble = FailingAttempts | HostLoss | SchedulerOutage | LostMessages


class ScenarioNeeds(msgspec.Struct, frozen=True, kw_only=True):
    """What a job truly takes. `hangs` is how many of its attempts never end by themselves."""

    seconds: float = 60
    memory_bytes: int = GIB
    hangs: int = 0


class AttemptEnd(msgspec.Struct, frozen=True):
    after_s: float
    outcome: Outcome


FOR_EVER_S = 10 * 86_400.0


class FailureModel:
    """Judges attempts, and counts them: how often jobs were begun, and which of them have come to a good end."""

    def __init__(self, needs: ScenarioNeeds, troubles: tuple[Trouble, ...]) -> None:
        self._needs = needs
        self._fails = [trouble for trouble in troubles if isinstance(trouble, FailingAttempts)]
        self.begun: dict[str, int] = {}
        self.good: set[str] = set()

    def attempt(self, spec: JobSpec, host: str, now_s: float) -> AttemptEnd:
        number = self.begun[spec.item] = self.begun.get(spec.item, 0) + 1
        return self._failing(spec, host, now_s, number) or self._running(spec, number)

    def forget(self) -> None:
        """What was counted so far was another story."""
        self.begun.clear()
        self.good.clear()

    def ended(self, spec: JobSpec, ending: AttemptEnd) -> Outcome:
        """The attempt was not cut off: its end is known."""
        if ending.outcome.ok:
            self.good.add(spec.item)
        return ending.outcome

    def _failing(self, spec: JobSpec, host: str, now_s: float, number: int) -> AttemptEnd | None:
        for trouble in self._fails:
            if (
                (trouble.times is None or number <= trouble.times)
                and (trouble.until_s is None or now_s < trouble.until_s)
                and (not trouble.hosts or host in trouble.hosts)
                and (not trouble.source or trouble.source == source(spec))
            ):
                measures = Measurements(peak_bytes=min(self._needs.memory_bytes, GIB))
                outputs = {"done": True} if trouble.ended_well else None
                outcome = Outcome(
                    fault=trouble.fault(spec), outputs=outputs, exit_code=trouble.exit_code, measures=measures
                )
                return AttemptEnd(trouble.after_s, outcome)
        return None

    def _running(self, spec: JobSpec, number: int) -> AttemptEnd:
        asked, needs = spec.resources, self._needs
        wall_s = asked.wall_ms / 1000 if asked.wall_ms else FOR_EVER_S
        seconds = FOR_EVER_S if number <= needs.hangs else needs.seconds
        if asked.memory_bytes and needs.memory_bytes > asked.memory_bytes:
            seconds *= asked.memory_bytes / needs.memory_bytes
            if seconds < wall_s:
                return AttemptEnd(seconds, _too_large(asked.memory_bytes))
        if seconds > wall_s:
            return AttemptEnd(wall_s, _too_long(wall_s))
        return AttemptEnd(
            seconds, Outcome(outputs={"done": True}, measures=Measurements(peak_bytes=needs.memory_bytes))
        )


def source(spec: JobSpec) -> str:
    """Where the job's input is fetched from first."""
    return next((places[0] for places in spec.replicas.values()), "")


def _too_large(asked: int) -> Outcome:
    """The pilot looks every so often, so the peak that it saw is a little above what was asked for."""
    peak = asked + asked // 50
    text = f"it used {peak / 1e9:.1f} GB, more than it asked for, and was killed"
    data = {"peak_bytes": peak, "limit_bytes": asked}
    fault = Fault(name="memoryLimit", category=Category.MEMORY, message=text, data=data, stage=AttemptStage.EXECUTION)
    return Outcome(fault=fault, measures=Measurements(peak_bytes=peak))


def _too_long(wall_s: float) -> Outcome:
    text = f"it ran longer than the {wall_s:g} s it asked for (wall time) and was killed"
    data = {"ran_ms": round(wall_s * 1000), "limit_ms": round(wall_s * 1000)}
    return Outcome(
        fault=Fault(name="timeLimit", category=Category.TIME, message=text, data=data, stage=AttemptStage.EXECUTION)
    )
