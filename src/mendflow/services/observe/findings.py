"""The checks of the monitor, as functions of what a server has in memory. The sentence of each finding says what to
do."""

from collections.abc import Iterator, Mapping, Sequence

from mendflow.core.model.alerts import Notification
from mendflow.core.model.ids import Instant
from mendflow.core.model.jobs import Job, Resources
from mendflow.core.scheduling.amounts import duration, size
from mendflow.core.scheduling.queue import WaitingGroup
from mendflow.services.base.alerts import AlertFinding
from mendflow.services.base.contracts import UnhandledFailure
from mendflow.services.observe.monitor_settings import MonitorSettings
from mendflow.services.scheduling.pilot_records import PilotRecord

DAY_MS = 86_400_000
NOT_TAKEN_UP = "no rule took it up"


def ran_ms(job: Job, pilot: PilotRecord, now: Instant) -> int:
    """How long its attempt has run: what its pilot last measured plus the time since then, or the time since the
    grant."""
    held = pilot.held.get(job.id)
    if held is not None and held.measures is not None and held.measures.ran_ms and pilot.seen_at:
        return held.measures.ran_ms + max(0, now - pilot.seen_at)
    return max(0, now - job.history[-1].granted_at)


def job_finding(
    job: Job, pilot: PilotRecord, expected_ms: int, *, now: Instant, silent_ms: int, rules: MonitorSettings
) -> AlertFinding | None:
    """A job that runs too long: orphaned if its pilot is silent, else over-long if it is far over its expected time."""
    ran, silence = ran_ms(job, pilot, now), now - pilot.seen_at if pilot.seen_at else 0
    if not expected_ms or ran <= max(expected_ms, rules.long_min_ms):
        return None
    sentence = f"job {job.id} ({job.spec.item!r}) has run for {duration(ran)} on pilot {pilot.id}"
    sentence += f" at {pilot.host}" if pilot.host else ""
    sentence += f", {duration(expected_ms)} were expected"
    if silence >= silent_ms:
        return AlertFinding(
            kind="orphan",
            subject=job.id,
            episode=f"{job.fence}-{pilot.newest}",
            sentence=f"{sentence}, and the pilot was not heard for {duration(silence)}. When its lease ends another"
            " pilot gets the job by itself; look whether that machine is still there",
            case=job.case,
            item=job.spec.item,
        )
    if ran <= rules.long_factor * expected_ms:
        return None
    return AlertFinding(
        kind="long-job",
        subject=job.id,
        episode=str(job.fence),
        sentence=f"{sentence}, and it still runs. See what it says with `mendflow logs {job.id}`; if it hangs, let"
        f" another pilot try it with `mendflow admin requeue {job.id}`",
        case=job.case,
        item=job.spec.item,
    )


def pilot_finding(pilot: PilotRecord, episode: str, *, lease_ms: int) -> AlertFinding:
    held = len(pilot.held)
    what = f"; the {held} jobs that it held are given to others" if held else ""
    return AlertFinding(
        kind="pilot-gone",
        subject=pilot.id,
        episode=episode,
        sentence=f"pilot {pilot.id} at {pilot.host or 'an unknown host'} has not been heard for a whole lease"
        f" ({duration(lease_ms)}), and did not say that it would leave{what}. Look at that machine and start the pilot"
        f" again, or acknowledge this if it is not to come back",
    )


def files_finding(server: str, problem: str, since: Instant) -> AlertFinding:
    return AlertFinding(
        kind="disk-full",
        subject=f"files of {server or 'this server'}",
        episode=str(since),
        sentence=f"the server cannot store files of jobs: {problem}. Jobs that have ended wait until it can, and then"
        " go on by themselves; `mendflow prune --older-than 30d` removes old cases and their files",
    )


def paused_finding(pilot: PilotRecord) -> AlertFinding:
    return AlertFinding(
        kind="disk-full",
        subject=pilot.id,
        episode=str(pilot.paused_since),
        sentence=f"pilot {pilot.id} at {pilot.host or 'an unknown host'} takes no new job: {pilot.paused}. Then it goes"
        " on by itself",
    )


def server_finding(server: str, incarnation: str, host: str, silent_ms: int) -> AlertFinding:
    return AlertFinding(
        kind="server-gone",
        subject=server,
        episode=incarnation,
        sentence=f"server {server}{f' at {host}' if host else ''} was silent for {duration(silent_ms)}, and others have"
        " taken its cases. Look at that machine and start the server again, or acknowledge this if it is not to come"
        " back",
    )


def delivery_finding(to: str, notification: Notification, why: str, now: Instant) -> AlertFinding:
    """At most one a day for each receiver."""
    waited, before = duration(now - notification.at), max(0, notification.serial - 1)
    return AlertFinding(
        kind="not-delivered",
        subject=to,
        episode=str(now // DAY_MS),
        sentence=f"{to} did not take the notification {notification.id} in {waited}: {why}. Others may be"
        f" missing there too; read them with `mendflow admin notifications --after {before}`, and put"
        " the receiver right or remove it with `mendflow admin webhooks remove`",
    )


def needs_text(needs: Resources) -> str:
    parts = [f"{needs.cpus:g} CPUs"]
    parts += [size(needs.memory_bytes)] if needs.memory_bytes else []
    parts += [f"{needs.gpus} GPUs"] if needs.gpus else []
    parts += [f"the site {needs.site}"] if needs.site else []
    return ", ".join(parts)


def held_finding(held: UnhandledFailure) -> AlertFinding:
    what = repr(held.item) if held.item is not None else "it"
    return AlertFinding(
        kind="case-held",
        subject=held.subject,
        episode=str(held.since),
        sentence=f"{held.case} is held: {what} failed and {held.tried or NOT_TAKEN_UP}: {held.message}. `mendflow"
        f" failures` is where you can teach a rule; `mendflow resume {held.case}` tries it again, `mendflow cancel"
        f" {held.case}` ends it",
        case=held.case,
        item=held.item,
        group=held.group,
    )


class Growth:
    """One length over several looks. `mark` has to stay the same meanwhile: the first entry of the queue."""

    __slots__ = ("lengths", "mark", "since")

    def __init__(self, mark: str, since: Instant) -> None:
        self.mark = mark
        self.since = since
        self.lengths: list[int] = []


class GrowthTracker:
    """Lengths that only grow, by name, from look to look."""

    def __init__(self, looks: int) -> None:
        self._looks = max(2, looks)
        self._known: dict[str, Growth] = {}

    def look(self, lengths: Mapping[str, tuple[int, str]], now: Instant) -> Iterator[tuple[str, Growth]]:
        """Those that have not become shorter at this many looks, and have become longer."""
        self._known = {name: each for name, each in self._known.items() if name in lengths}
        for name, (length, mark) in lengths.items():
            known = self._known.get(name)
            if known is None or known.mark != mark or (known.lengths and length < known.lengths[-1]):
                known = self._known[name] = Growth(mark, now)
            known.lengths = [*known.lengths, length][-self._looks :]
            if len(known.lengths) == self._looks and known.lengths[-1] > known.lengths[0]:
                yield name, known

    def is_ongoing(self, episode: str) -> bool:
        """Whether what began then has not been interrupted since."""
        return any(str(known.since) == episode for known in self._known.values())


def queue_finding(waiting: WaitingGroup, server: str, growth: Growth) -> AlertFinding:
    able = (
        "the pilots that could take them are busy or kept"
        if waiting.has_pilot
        else "no pilot that is here could take them"
    )
    return AlertFinding(
        kind="queue-grows",
        subject=f"{needs_text(waiting.needs)} at {server}",
        episode=str(growth.since),
        sentence=f"{growth.lengths[-1]} jobs that need {needs_text(waiting.needs)} wait at server {server},"
        f" {growth.lengths[-1] - growth.lengths[0]} more than {len(growth.lengths) - 1} looks ago, and none was taken:"
        f" {able}. Start pilots with so much; `mendflow why {waiting.first}` tells what is missing",
    )


def level_finding(level: int, server: str, growth: Growth, wait_ms: int) -> AlertFinding:
    return AlertFinding(
        kind="level-fills",
        subject=f"level {level} at {server}",
        episode=str(growth.since),
        sentence=f"{growth.lengths[-1]} failed jobs wait in level {level} at server {server} and they get more; each"
        f" waits {duration(wait_ms)} before it is tried again. See `mendflow failures` for what they have in common;"
        f" when that is put right, `mendflow rules levels drain {level}` lets them go on",
    )


def limit_finding(limit: str, waiting: WaitingGroup, first: Job) -> AlertFinding:
    """Jobs wait for a limit that nobody has set: they would do so for ever."""
    who = repr(first.spec.shown) if waiting.jobs == 1 else f"{waiting.jobs} jobs, first {first.spec.shown!r},"
    return AlertFinding(
        kind="limit-unset",
        subject=limit,
        episode=str(waiting.since),
        sentence=f"{first.case}: {who} {'waits' if waiting.jobs == 1 else 'wait'} for limit {limit!r}, which nobody has"
        f" set, and would do so for ever; an administrator sets it with `mendflow limits set {limit} COUNT`",
        case=first.case,
        item=first.spec.item,
    )


def no_pilot_finding(jobs: Sequence[Job], why: str, server: str) -> AlertFinding:
    """Jobs of one task of a case, the longest wait first, that no pilot there is could ever take. Another server that
    takes the case raises its own."""
    first = jobs[0]
    who = f"{first.spec.shown!r} waits" if len(jobs) == 1 else f"{len(jobs)} items, first {first.spec.shown!r}, wait"
    return AlertFinding(
        kind="no-pilot",
        subject=first.id,
        episode=f"{first.fence}-{server}",
        sentence=f"{first.case}: {who}, and would do so for ever: {why}. Start a pilot that has as much, with `mendflow"
        f" pilot`; or `mendflow cancel {first.case}`, and ask for less",
        case=first.case,
        item=first.spec.item,
    )
