"""The life of a site's submissions: what is recorded before a pilot is submitted, and what follows from later reports
of the batch system or of the pilot.

No id of a batch system is trusted. A submission is identified by its name: it exists if the batch system knows
something by that name, and it works if a pilot has registered with it that has its secret: names are shown to all. A
batch system that does not answer proves nothing, and meanwhile nothing is submitted. Every submission is charged to the
budget when it is recorded: whatever a batch system answers, forgets or invents, an hour costs no more than the site's
budget."""

import hmac
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from mendflow.core.model.ids import Instant
from mendflow.core.model.sites import (
    FAILED_ENDS,
    HOUR_MS,
    BatchJobStatus,
    PauseRecord,
    PilotOffer,
    PilotSubmission,
    Purpose,
    SiteDocument,
    SubmissionEnd,
    SubmissionEndKind,
    SubmissionState,
    SubmitAccepted,
    SubmitRejected,
    SubmitResult,
    SubmitSkipped,
    SubmitUncertain,
)
from mendflow.core.scheduling.surplus import reassign_ready, submissions_to_withdraw

ENDS_MAX = 200
SERIAL_DIGITS_MAX = 15
WHY_CHARS = 500
FIRST_WAIT_MS = 15_000
LONGEST_WAIT_MS = 900_000
"""How long the next submission waits after a failure: twice as long after each further one."""

AT_ONCE_MAX = 50
"""At most so many are submitted per round."""

RECOVERABLE_ENDS: frozenset[SubmissionEndKind] = frozenset({"gone", "rejected", "lost", "ended", "silent"})
"""Submissions that we have given up: if one appears after all, it counts again."""

OFFERS_MAX = 20
OFFER_AGE_MAX_MS = 24 * HOUR_MS
"""How many pilots' offers are kept, and for how long."""

_replace = msgspec.structs.replace


class SiteObservation(msgspec.Struct, frozen=True, kw_only=True):
    """What one round has observed. `found` is what the batch system knows by our names, None if it did not answer.
    `heard` are live pilots, by their submission's name, and `offers` what they have. `silent_ms` is how long a working
    pilot may be silent, and `watched_since` since when this server listens: before that nobody could be heard."""

    found: Mapping[str, BatchJobStatus] | None
    heard: Mapping[str, str]
    offers: Mapping[str, PilotOffer] = {}
    busy: frozenset[str] = frozenset()  # the names of those that have a job
    now: Instant
    silent_ms: int
    watched_since: Instant
    why: str = ""  # it did not answer


class SiteUpdate(msgspec.Struct, frozen=True):
    """The document after a round, and what to cancel in the batch system."""

    document: SiteDocument
    cancel: tuple[str, ...] = ()


def submission_allowance(document: SiteDocument, now: Instant) -> tuple[int, str]:
    """How many may be submitted now; and why not more, if there is a reason."""
    site = document.site
    if document.removed:
        return 0, "the site is being removed"
    if document.paused is not None:
        return 0, f"the site is paused: {document.paused.why}"
    if document.unheard_since:
        return 0, f"its batch system does not answer: {document.trouble}"
    if now < document.not_before:
        return 0, f"the last submission failed, and the next waits: {document.trouble}"
    left = left_this_hour(document, now)
    if not left:
        return 0, f"{site.submissions_per_hour} were submitted in the last hour, which is the limit"
    return min(left, 1 if document.failures else AT_ONCE_MAX), ""


def left_this_hour(document: SiteDocument, now: Instant) -> int:
    """How much of the budget is left."""
    return max(0, document.site.submissions_per_hour - len(_spent(document, now)))


def is_ours(document: SiteDocument, name: str) -> bool:
    """Whether this very site has given this name, and not another of the same name, nor somebody who made it up."""
    serial, _, mark = name.removeprefix(_prefix(document)).partition("-")
    if not name.startswith(_prefix(document)) or mark != document.mark:
        return False
    return serial.isascii() and serial.isdigit() and len(serial) <= SERIAL_DIGITS_MAX and int(serial) <= document.serial


def with_key(document: SiteDocument, key: str) -> SiteDocument:
    """The document of a site that had no key, with one."""
    assert not document.key, f"site {document.site.name} has a key"
    return _replace(document, key=key, serial_before_key=document.serial)


def secret_of(document: SiteDocument, name: str) -> str:
    """What is given to the pilot that is submitted under this name, and to nobody else."""
    assert document.key, f"site {document.site.name} has no key"
    return hmac.new(document.key.encode(), name.encode(), "sha256").hexdigest()


def is_pilot_of(document: SiteDocument, name: str, secret: str) -> bool:
    """Whether who shows this secret was submitted under this name. Pilots that were submitted before the site had a key
    have none: until they end, their names are enough."""
    if not is_ours(document, name):
        return False
    if document.key and hmac.compare_digest(secret_of(document, name).encode(), secret.encode()):
        return True
    return name in document.open and (not document.key or _serial_of(document, name) <= document.serial_before_key)


def _serial_of(document: SiteDocument, name: str) -> int:
    return int(name.removeprefix(_prefix(document)).partition("-")[0])


def site_of(name: str) -> str:
    """The site that a pilot of this name was submitted for; empty if it is not such a name."""
    parts = name.removeprefix("mendflow-").rsplit("-", 2)
    return parts[0] if name.startswith("mendflow-") and len(parts) == 3 else ""


def reserve(
    document: SiteDocument, purposes: Sequence[Purpose], *, now: Instant, by: str
) -> tuple[SiteDocument, list[PilotSubmission]]:
    """Record pilots that are about to be submitted, and charge the budget."""
    assert len(purposes) <= submission_allowance(document, now)[0], "more than is allowed"
    new = [
        PilotSubmission(
            name=f"{_prefix(document)}{document.serial + place}-{document.mark}",
            purpose=purpose,
            planned_at=now,
            since=now,
            by=by,
        )
        for place, purpose in enumerate(purposes, 1)
    ]
    written = _replace(
        document,
        serial=document.serial + len(new),
        spent=(*_spent(document, now), *([now] * len(new))),
        open={**document.open, **{each.name: each for each in new}},
    )
    return written, new


def apply_answers(document: SiteDocument, answers: Mapping[str, SubmitResult], now: Instant) -> SiteDocument:
    """Apply the batch system's answers to submissions."""
    for name, answer in answers.items():
        known = document.open.get(name)
        if known is None:
            continue
        match answer:
            case SubmitAccepted(native):
                document = _with_submission(document, _with_state(known, SubmissionState.SUBMITTED, now, native=native))
            case SubmitRejected(why):
                document = close_submission(document, name, "rejected", now=now, why=why)
            case SubmitUncertain(why):
                document = _record_failure(document, why, now)
            case SubmitSkipped():
                document = _refund(document, known)
    return document


def apply_observation(document: SiteDocument, seen: SiteObservation) -> SiteUpdate:
    """Apply an observation of the batch system and the pilots."""
    document = _apply_contacts(document, seen)
    if seen.found is None:
        since = document.unheard_since or seen.now
        return SiteUpdate(_replace(document, unheard_since=since, trouble=seen.why[:WHY_CHARS]))
    if document.unheard_since:
        document = _replace(document, unheard_since=0, trouble="")
    cancel: list[str] = []
    for known in list(document.open.values()):
        found = seen.found.get(known.name)
        document = _update_submission(document, known, found, seen, cancel)
    for name, found in seen.found.items():
        if name not in document.open and found.state != "ended" and _counts_again(document, name):
            document = _adopt(document, name, found, seen.now)
    document = reassign_ready(document, seen.busy)
    again_at = seen.now - document.site.lost_ms
    cancel += [name for name in submissions_to_withdraw(document) if document.open[name].cancelled_at <= again_at]
    return SiteUpdate(_mark_cancelled(document, cancel, seen.now), tuple(dict.fromkeys(cancel)))


def close_submission(
    document: SiteDocument, name: str, how: SubmissionEndKind, *, now: Instant, why: str = "", pilot: str = ""
) -> SiteDocument:
    """End this submission. Does nothing if it has ended already."""
    known = document.open.get(name)
    if known is None:
        return document
    if known.cancelled_at and how in FAILED_ENDS:
        how = "withdrawn"
    ending = SubmissionEnd(
        name=name, how=how, at=now, why=why[:WHY_CHARS], native=known.native, pilot=pilot or known.pilot
    )
    left = {each: other for each, other in document.open.items() if each != name}
    document = _replace(document, open=left, endings=(*document.endings, ending)[-ENDS_MAX:])
    return (
        _record_failure(document, f"{name} {_HOW[how]}{f': {why}' if why else ''}", now)
        if how in FAILED_ENDS
        else document
    )


def pause(document: SiteDocument, why: str, *, now: Instant, by: str = "") -> SiteDocument:
    return _replace(document, paused=PauseRecord(at=now, why=why, by=by))


def resume(document: SiteDocument) -> SiteDocument:
    """Forget failures and learnt offers; the spent budget stays spent."""
    return _replace(document, paused=None, failures=0, not_before=0, trouble="", offered=())


def record_working_pilot(
    document: SiteDocument, name: str, pilot: str, now: Instant, offered: PilotOffer | None = None
) -> SiteDocument:
    """A working pilot has registered under this name. One that was given up counts again. `offered` is what it has."""
    known = document.open.get(name)
    if known is None:
        if not _counts_again(document, name):
            return document
        known = _recovered_submission(name, "", now)
    if known.state is SubmissionState.WORKING and known.pilot == pilot:
        return document
    document = _replace(
        document, failures=0, not_before=0, trouble="" if not document.unheard_since else document.trouble
    )
    if offered is not None:
        document = _replace(document, offered=(*_recent_offers(document, now), offered)[-OFFERS_MAX:])
    return _with_submission(document, _with_state(known, SubmissionState.WORKING, now, pilot=pilot))


def record_contact(document: SiteDocument, name: str, now: Instant) -> SiteDocument:
    """Somebody with this name was heard. A submission that was given up counts again."""
    return (
        document
        if name in document.open or not _counts_again(document, name)
        else _with_submission(document, _recovered_submission(name, "", now))
    )


_NEVER_SUBMITTED = "it was about to be submitted, and apparently never was"
_HOW: dict[SubmissionEndKind, str] = {
    "unfit": "could not work there",
    "rejected": "was refused",
    "lost": "is not known to the batch system",
    "ended": "ended before its pilot was heard",
    "silent": "was started, and its pilot was not heard",
}


def _apply_contacts(document: SiteDocument, seen: SiteObservation) -> SiteDocument:
    for name, pilot in seen.heard.items():
        document = record_working_pilot(document, name, pilot, seen.now, seen.offers.get(name))
    known = _recent_offers(document, seen.now)
    return document if known == document.offered else _replace(document, offered=known)


def _recent_offers(document: SiteDocument, now: Instant) -> tuple[PilotOffer, ...]:
    return tuple(each for each in document.offered if each.at > now - OFFER_AGE_MAX_MS)


def _update_submission(
    document: SiteDocument,
    known: PilotSubmission,
    found: BatchJobStatus | None,
    seen: SiteObservation,
    cancel: list[str],
) -> SiteDocument:
    now, site = seen.now, document.site
    known = document.open[known.name]
    if known.state is SubmissionState.WORKING:
        return _update_working(document, known, found, seen, cancel)
    if found is None:
        missed_at = known.missed_at or now
        if now - max(missed_at, known.planned_at) >= site.lost_ms:
            never = known.state is SubmissionState.PLANNED
            return close_submission(document, known.name, "lost", now=now, why=_NEVER_SUBMITTED if never else "")
        return document if known.missed_at else _with_submission(document, _replace(known, missed_at=now))
    if found.state == "ended":
        return close_submission(document, known.name, "ended", now=now, why=found.why)
    state = SubmissionState.QUEUED if found.state == "queued" else SubmissionState.RUNNING
    if known.state is not state or known.missed_at:
        known = _with_state(known, state, now, native=found.native)
        document = _with_submission(document, known)
    if state is SubmissionState.RUNNING and now - known.since >= site.start_ms:
        cancel.append(known.name)
        return close_submission(document, known.name, "silent", now=now)
    return document


def _update_working(
    document: SiteDocument,
    known: PilotSubmission,
    found: BatchJobStatus | None,
    seen: SiteObservation,
    cancel: list[str],
) -> SiteDocument:
    """While its pilot is heard, nothing else counts. After that it is gone; if something by its name still runs there,
    it is cancelled once it was silent for as long as a pilot may take to start."""
    now = seen.now
    if known.name in seen.heard:
        return document if not known.missed_at else _with_submission(document, _replace(known, missed_at=0))
    if not known.missed_at:
        return _with_submission(document, _replace(known, missed_at=now))
    silent_ms = now - max(known.missed_at, seen.watched_since)
    runs = found is not None and found.state != "ended"
    if silent_ms < (document.site.start_ms if runs else seen.silent_ms):
        return document
    if runs:
        cancel.append(known.name)
    return close_submission(document, known.name, "gone", now=now, why=found.why if found is not None else "")


def _adopt(document: SiteDocument, name: str, found: BatchJobStatus, now: Instant) -> SiteDocument:
    """The batch system has something by a name that was given up: it counts again."""
    known = _recovered_submission(name, found.native, now)
    state = SubmissionState.QUEUED if found.state == "queued" else SubmissionState.RUNNING
    return _with_submission(document, _with_state(known, state, now, native=found.native))


def _counts_again(document: SiteDocument, name: str) -> bool:
    """Whether something by this name counts, though it is not open. One that left, or was cancelled, may still be
    visible for a while."""
    ended = {each.name: each.how for each in document.endings}
    return is_ours(document, name) and ended.get(name, "lost") in RECOVERABLE_ENDS


def _recovered_submission(name: str, native: str, now: Instant) -> PilotSubmission:
    return PilotSubmission(name=name, purpose="jobs", planned_at=now, since=now, by="", native=native)


def _record_failure(document: SiteDocument, why: str, now: Instant) -> SiteDocument:
    """Record a failure: the next submission waits, and after too many the site is paused until somebody resumes it.
    Failures of one round count once, however many pilots they concern."""
    failures = document.failures + (document.failed_at != now)
    wait_ms = min(FIRST_WAIT_MS << min(failures - 1, 16), LONGEST_WAIT_MS)
    document = _replace(document, failures=failures, failed_at=now, not_before=now + wait_ms, trouble=why[:WHY_CHARS])
    if failures >= document.site.failures_max and document.paused is None and not document.removed:
        return pause(document, f"{failures} failures without a pilot that worked; the last: {why[:WHY_CHARS]}", now=now)
    return document


def _refund(document: SiteDocument, known: PilotSubmission) -> SiteDocument:
    """It was recorded, and certainly not submitted: give the charge back."""
    spent = list(document.spent)
    if known.planned_at in spent:
        spent.remove(known.planned_at)
    left = {name: each for name, each in document.open.items() if name != known.name}
    return _replace(document, spent=tuple(spent), open=left)


def _mark_cancelled(document: SiteDocument, cancel: Iterable[str], now: Instant) -> SiteDocument:
    for name in cancel:
        if (known := document.open.get(name)) is not None:
            document = _with_submission(document, _replace(known, cancelled_at=now))
    return document


def _prefix(document: SiteDocument) -> str:
    return f"mendflow-{document.site.name}-"


def _spent(document: SiteDocument, now: Instant) -> tuple[Instant, ...]:
    return tuple(at for at in document.spent if at > now - HOUR_MS)


def _with_submission(document: SiteDocument, submission: PilotSubmission) -> SiteDocument:
    return _replace(document, open={**document.open, submission.name: submission})


def _with_state(
    known: PilotSubmission, state: SubmissionState, now: Instant, *, native: str = "", pilot: str = ""
) -> PilotSubmission:
    since = known.since if known.state is state else now
    return _replace(
        known, state=state, since=since, missed_at=0, native=native or known.native, pilot=pilot or known.pilot
    )
