"""The life of a site's submissions: what is written down before a pilot is submitted, and what follows from all that is
heard of it later, from the batch system or from itself.

Nothing here believes a number. A submission is what has its name: it is there if the batch system knows something by
that name, and it works if a pilot was heard that says it. A batch system that does not answer proves nothing, and while
it does not, nothing is submitted. Every submission is paid for when it is written down: whatever a batch system
answers, forgets or makes up, an hour costs no more than the site's budget."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from mendflow.core.model.ids import Instant
from mendflow.core.model.sites import (
    FAILED,
    HOUR_MS,
    Acknowledged,
    Answer,
    Ending,
    Found,
    How,
    Offered,
    Pause,
    PilotSubmission,
    Purpose,
    Rejected,
    SiteDocument,
    SubmissionState,
    Unsure,
    Untried,
)
from mendflow.core.scheduling.surplus import eased, to_withdraw

ENDINGS_KEPT = 200
SERIAL_DIGITS_MAX = 15
WHY_CHARS = 500
FIRST_WAIT_MS = 15_000
LONGEST_WAIT_MS = 900_000
"""How long the next submission waits after a failure: twice as long after each further one."""

AT_ONCE_MAX = 50
"""So many are submitted at one look: the next look submits more."""

COMES_BACK: frozenset[How] = frozenset({"gone", "rejected", "lost", "ended", "silent"})
"""What was given up by our own judgement: should it be there after all, it counts again."""

OFFERS_KEPT = 20
OFFERS_KEPT_MS = 24 * HOUR_MS
"""Of so many pilots it is kept what they had, and for so long."""

_replace = msgspec.structs.replace


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What one look has seen. `found` is what the batch system knows by our names, None if it did not answer. `heard`
    are pilots that live, by the name that they say, and `offers` what they have. `silent_ms` is how long a pilot that
    works may be silent, and `watched_since` since when somebody listens: before that nobody could be heard."""

    found: Mapping[str, Found] | None
    heard: Mapping[str, str]
    offers: Mapping[str, Offered] = {}
    busy: frozenset[str] = frozenset()  # the names of those that have a job
    now: Instant
    silent_ms: int
    watched_since: Instant
    why: str = ""  # it did not answer


class Look(msgspec.Struct, frozen=True):
    """The document after a look, and what is to be taken back from the batch system."""

    document: SiteDocument
    cancel: tuple[str, ...] = ()


def allowed(document: SiteDocument, now: Instant) -> tuple[int, str]:
    """How many may be submitted now; and why not more, if something is in the way."""
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
        return 0, f"{site.submissions_per_hour} were submitted in the last hour, which is all that it may cost"
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


def site_of(name: str) -> str:
    """The site that a pilot of this name was submitted for; nothing if it is no such name."""
    parts = name.removeprefix("mendflow-").rsplit("-", 2)
    return parts[0] if name.startswith("mendflow-") and len(parts) == 3 else ""


def reserve(
    document: SiteDocument, purposes: Sequence[Purpose], *, now: Instant, by: str
) -> tuple[SiteDocument, list[PilotSubmission]]:
    """Write down pilots that are about to be submitted, and pay for them."""
    assert len(purposes) <= allowed(document, now)[0], "more than is allowed"
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


def answered(document: SiteDocument, answers: Mapping[str, Answer], now: Instant) -> SiteDocument:
    """What the batch system said to submissions."""
    for name, answer in answers.items():
        known = document.open.get(name)
        if known is None:
            continue
        match answer:
            case Acknowledged(native):
                document = _with(document, _moved(known, SubmissionState.SUBMITTED, now, native=native))
            case Rejected(why):
                document = close(document, name, "rejected", now=now, why=why)
            case Unsure(why):
                document = _failed(document, why, now)
            case Untried():
                document = _unpaid(document, known)
    return document


def look(document: SiteDocument, seen: Seen) -> Look:
    """What follows from a look at the batch system and at the pilots."""
    document = _heard(document, seen)
    if seen.found is None:
        since = document.unheard_since or seen.now
        return Look(_replace(document, unheard_since=since, trouble=seen.why[:WHY_CHARS]))
    if document.unheard_since:
        document = _replace(document, unheard_since=0, trouble="")
    cancel: list[str] = []
    for known in list(document.open.values()):
        found = seen.found.get(known.name)
        document = _looked(document, known, found, seen, cancel)
    for name, found in seen.found.items():
        if name not in document.open and found.state != "ended" and _comes_back(document, name):
            document = _adopted(document, name, found, seen.now)
    document = eased(document, seen.busy)
    again_at = seen.now - document.site.lost_ms
    cancel += [name for name in to_withdraw(document) if document.open[name].cancelled_at <= again_at]
    return Look(_marked(document, cancel, seen.now), tuple(dict.fromkeys(cancel)))


def close(document: SiteDocument, name: str, how: How, *, now: Instant, why: str = "", pilot: str = "") -> SiteDocument:
    """This submission is over. Of one that is over already nothing more is said."""
    known = document.open.get(name)
    if known is None:
        return document
    if known.cancelled_at and how in FAILED:
        how = "withdrawn"
    ending = Ending(name=name, how=how, at=now, why=why[:WHY_CHARS], native=known.native, pilot=pilot or known.pilot)
    left = {each: other for each, other in document.open.items() if each != name}
    document = _replace(document, open=left, endings=(*document.endings, ending)[-ENDINGS_KEPT:])
    return _failed(document, f"{name} {_HOW[how]}{f': {why}' if why else ''}", now) if how in FAILED else document


def pause(document: SiteDocument, why: str, *, now: Instant, by: str = "") -> SiteDocument:
    return _replace(document, paused=Pause(at=now, why=why, by=by))


def resume(document: SiteDocument) -> SiteDocument:
    """Go on as if nothing had failed, and nothing were known of its pilots; what was spent of the budget is spent."""
    return _replace(document, paused=None, failures=0, not_before=0, trouble="", offered=())


def worked(document: SiteDocument, name: str, pilot: str, now: Instant, offered: Offered | None = None) -> SiteDocument:
    """A pilot was heard under this name, and can work. One that was given up for lost comes back. `offered` is what it
    has."""
    known = document.open.get(name)
    if known is None:
        if not _comes_back(document, name):
            return document
        known = _found_again(name, "", now)
    if known.state is SubmissionState.WORKING and known.pilot == pilot:
        return document
    document = _replace(
        document, failures=0, not_before=0, trouble="" if not document.unheard_since else document.trouble
    )
    if offered is not None:
        document = _replace(document, offered=(*_still_known(document, now), offered)[-OFFERS_KEPT:])
    return _with(document, _moved(known, SubmissionState.WORKING, now, pilot=pilot))


def heard_of(document: SiteDocument, name: str, now: Instant) -> SiteDocument:
    """Somebody by this name was heard, whatever it said. One that was given up counts again."""
    return (
        document
        if name in document.open or not _comes_back(document, name)
        else _with(document, _found_again(name, "", now))
    )


_NEVER_SEEN = "it was about to be submitted, and it never came to that, as far as can be seen"
_HOW: dict[How, str] = {
    "unfit": "could not work there",
    "rejected": "was refused",
    "lost": "is not known to the batch system",
    "ended": "ended before its pilot was heard",
    "silent": "was started, and its pilot was not heard",
}


def _heard(document: SiteDocument, seen: Seen) -> SiteDocument:
    for name, pilot in seen.heard.items():
        document = worked(document, name, pilot, seen.now, seen.offers.get(name))
    known = _still_known(document, seen.now)
    return document if known == document.offered else _replace(document, offered=known)


def _still_known(document: SiteDocument, now: Instant) -> tuple[Offered, ...]:
    return tuple(each for each in document.offered if each.at > now - OFFERS_KEPT_MS)


def _looked(
    document: SiteDocument, known: PilotSubmission, found: Found | None, seen: Seen, cancel: list[str]
) -> SiteDocument:
    now, site = seen.now, document.site
    known = document.open[known.name]
    if known.state is SubmissionState.WORKING:
        return _working(document, known, found, seen, cancel)
    if found is None:
        missed_at = known.missed_at or now
        if now - max(missed_at, known.planned_at) >= site.lost_ms:
            never = known.state is SubmissionState.PLANNED
            return close(document, known.name, "lost", now=now, why=_NEVER_SEEN if never else "")
        return document if known.missed_at else _with(document, _replace(known, missed_at=now))
    if found.state == "ended":
        return close(document, known.name, "ended", now=now, why=found.why)
    state = SubmissionState.QUEUED if found.state == "queued" else SubmissionState.RUNNING
    if known.state is not state or known.missed_at:
        known = _moved(known, state, now, native=found.native)
        document = _with(document, known)
    if state is SubmissionState.RUNNING and now - known.since >= site.start_ms:
        cancel.append(known.name)
        return close(document, known.name, "silent", now=now)
    return document


def _working(
    document: SiteDocument, known: PilotSubmission, found: Found | None, seen: Seen, cancel: list[str]
) -> SiteDocument:
    """One whose pilot was heard: while it is, nothing else counts. After that it is gone; if something by its name
    still runs there, it is taken back when it was silent for as long as a pilot may take to come."""
    now = seen.now
    if known.name in seen.heard:
        return document if not known.missed_at else _with(document, _replace(known, missed_at=0))
    if not known.missed_at:
        return _with(document, _replace(known, missed_at=now))
    silent_ms = now - max(known.missed_at, seen.watched_since)
    runs = found is not None and found.state != "ended"
    if silent_ms < (document.site.start_ms if runs else seen.silent_ms):
        return document
    if runs:
        cancel.append(known.name)
    return close(document, known.name, "gone", now=now, why=found.why if found is not None else "")


def _adopted(document: SiteDocument, name: str, found: Found, now: Instant) -> SiteDocument:
    """The batch system has something by a name of ours that was given up: it counts again."""
    known = _found_again(name, found.native, now)
    state = SubmissionState.QUEUED if found.state == "queued" else SubmissionState.RUNNING
    return _with(document, _moved(known, state, now, native=found.native))


def _comes_back(document: SiteDocument, name: str) -> bool:
    """Whether something by this name counts, though it is not written down as open. What left, or was taken back, may
    be seen for a while yet."""
    ended = {each.name: each.how for each in document.endings}
    return is_ours(document, name) and ended.get(name, "lost") in COMES_BACK


def _found_again(name: str, native: str, now: Instant) -> PilotSubmission:
    return PilotSubmission(name=name, purpose="jobs", planned_at=now, since=now, by="", native=native)


def _failed(document: SiteDocument, why: str, now: Instant) -> SiteDocument:
    """Something went wrong: the next submission waits, and after too many there is none until somebody has looked. What
    goes wrong at one look counts once, however many pilots it is about."""
    failures = document.failures + (document.failed_at != now)
    wait_ms = min(FIRST_WAIT_MS << min(failures - 1, 16), LONGEST_WAIT_MS)
    document = _replace(document, failures=failures, failed_at=now, not_before=now + wait_ms, trouble=why[:WHY_CHARS])
    if failures >= document.site.failures_max and document.paused is None and not document.removed:
        return pause(document, f"{failures} failures without a pilot that worked; the last: {why[:WHY_CHARS]}", now=now)
    return document


def _unpaid(document: SiteDocument, known: PilotSubmission) -> SiteDocument:
    """It was written down, and certainly not submitted."""
    spent = list(document.spent)
    if known.planned_at in spent:
        spent.remove(known.planned_at)
    left = {name: each for name, each in document.open.items() if name != known.name}
    return _replace(document, spent=tuple(spent), open=left)


def _marked(document: SiteDocument, cancel: Iterable[str], now: Instant) -> SiteDocument:
    for name in cancel:
        if (known := document.open.get(name)) is not None:
            document = _with(document, _replace(known, cancelled_at=now))
    return document


def _prefix(document: SiteDocument) -> str:
    return f"mendflow-{document.site.name}-"


def _spent(document: SiteDocument, now: Instant) -> tuple[Instant, ...]:
    return tuple(at for at in document.spent if at > now - HOUR_MS)


def _with(document: SiteDocument, submission: PilotSubmission) -> SiteDocument:
    return _replace(document, open={**document.open, submission.name: submission})


def _moved(
    known: PilotSubmission, state: SubmissionState, now: Instant, *, native: str = "", pilot: str = ""
) -> PilotSubmission:
    since = known.since if known.state is state else now
    return _replace(
        known, state=state, since=since, missed_at=0, native=native or known.native, pilot=pilot or known.pilot
    )
