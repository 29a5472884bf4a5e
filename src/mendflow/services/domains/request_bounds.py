"""Which requests of another domain are answered: of a version that is known, and how much they may hold; and what is
left of its answers, which are for people in large part."""

from typing import Final

from msgspec.structs import replace

from mendflow.core.domains.domain_names import domain_name_flaw
from mendflow.core.model.domains import PROTOCOL, DomainRequest, SentWork, WorkClaim, WorkRef, WorkStatus
from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.jobs import Attempt
from mendflow.core.model.sync import NUMBER_MAX
from mendflow.core.scheduling.report_bounds import bounded_attempt, bounded_number
from mendflow.core.scheduling.reported_outcomes import reported_fault, reported_outcome
from mendflow.services.cases.case_starter import demand_key

SENDER_CHARS_MAX: Final = 200
SENT_WORKS_MAX: Final = 1_000
FILES_MAX: Final = 10_000
"""Of one piece of work."""
CLAIMS_MAX: Final = 100_000
FENCE_MAX: Final = 1_000_000_000
NAME_CHARS_MAX: Final = 1_000
"""Of the owner of a piece of work, and of its name. Each domain on its way puts its own name before the owner's."""
WAY_MAX: Final = 20
REASON_CHARS_MAX: Final = 10_000
WORD_CHARS_MAX: Final = 255
LOG_CHARS_MAX: Final = 10_000
ATTEMPTS_MAX: Final = 1_000


def demand_protocol(request: DomainRequest) -> None:
    """Refuse a request of a version that this server does not know."""
    if request.protocol > PROTOCOL:
        raise InvalidRequest(
            f"this server speaks version {PROTOCOL} of what domains say to each other, and got {request.protocol};"
            " the newer side has to speak the older one's",
            field="protocol",
        )


def demand_bounded(request: DomainRequest) -> None:
    """Refuse a request that no server of ours would send."""
    demand_protocol(request)
    if not request.sender or not _is_line(request.sender, SENDER_CHARS_MAX):
        raise InvalidRequest(f"sender: a server is named in one line of at most {SENDER_CHARS_MAX} characters")
    if not _is_line(request.granted_meter, SENDER_CHARS_MAX):
        raise InvalidRequest(f"granted_meter: a meter is named in one line of at most {SENDER_CHARS_MAX} characters")
    for name in ("serial", "heard", "hold_ms", "granted_stamp"):
        if not 0 <= getattr(request, name) <= NUMBER_MAX:
            raise InvalidRequest(f"{name}: a number from 0 to {NUMBER_MAX} is expected", field=name)
    if request.lease_ms < 0:
        raise InvalidRequest("lease_ms: a lease is granted for 0 ms or more", field="lease_ms")
    if len(request.sent) > SENT_WORKS_MAX:
        raise InvalidRequest(
            f"sent: {len(request.sent)} pieces of work are too many for one request; send at most {SENT_WORKS_MAX}"
        )
    for name, refs in (("claims", request.claims), ("acknowledged", request.acknowledged)):
        if len(refs) > CLAIMS_MAX:
            raise InvalidRequest(f"{name}: a request names at most {CLAIMS_MAX} pieces of work, and this {len(refs)}")
    named: list[WorkRef | SentWork | WorkClaim] = [*request.sent, *request.claims, *request.acknowledged]
    for each in named:
        demand_key(each.key, "key")
        if not 1 <= each.fence <= FENCE_MAX:
            raise InvalidRequest(f"fence: that of {each.key!r} is not between 1 and {FENCE_MAX}", field="fence")
    for claim in request.claims:
        if len(claim.reason) > REASON_CHARS_MAX:
            raise InvalidRequest(f"reason: at most {REASON_CHARS_MAX} characters are taken", field="reason")


def demand_plain(work: SentWork) -> None:
    """Refuse a piece of work whose names are none."""
    for name, text in (("owner", work.owner), ("name", work.name)):
        if not _is_line(text, NAME_CHARS_MAX):
            raise InvalidRequest(
                f"{name}: one line of at most {NAME_CHARS_MAX} characters that can be printed is expected", field=name
            )
    if len(work.way) > WAY_MAX:
        raise InvalidRequest(
            f"way: it has come through {len(work.way)} domains, and work of at most {WAY_MAX} is taken", field="way"
        )
    for domain in work.way:
        if flaw := domain_name_flaw(domain):
            raise InvalidRequest(f"way: {flaw}", field="way")


def bounded_status(status: WorkStatus, domain: str) -> WorkStatus:
    """What another domain, the host of a piece of work, says of it, with numbers in range, no more text than people
    read, and nothing that only we can know."""
    tries = status.tries
    if tries is not None:
        tries = replace(
            tries,
            fence=bounded_number(tries.fence),
            unbegun=bounded_number(tries.unbegun),
            failures=bounded_number(tries.failures),
            losses=bounded_number(tries.losses),
            attempts=tuple(_reported_attempt(each, domain) for each in tries.attempts[-ATTEMPTS_MAX:]),
        )
    return replace(
        status,
        case=_line(status.case),
        missing=status.missing[:FILES_MAX],
        outcome=reported_outcome(status.outcome, domain) if status.outcome is not None else None,
        progress=_line(status.progress),
        reason=_text(status.reason, REASON_CHARS_MAX),
        host=_line(status.host),
        site=_line(status.site),
        attempts=bounded_number(status.attempts),
        losses=bounded_number(status.losses),
        began_at=bounded_number(status.began_at),
        log_tail=status.log_tail[-LOG_CHARS_MAX:],
        tries=tries,
    )


def _reported_attempt(attempt: Attempt, domain: str) -> Attempt:
    attempt = bounded_attempt(attempt)
    return replace(attempt, fault=reported_fault(attempt.fault, domain)) if attempt.fault is not None else attempt


def _is_line(text: str, chars_max: int) -> bool:
    return len(text) <= chars_max and text.isprintable()


def _line(text: str) -> str:
    return text if _is_line(text, WORD_CHARS_MAX) else _text(text, WORD_CHARS_MAX).replace("\n", " ")


def _text(text: str, chars_max: int) -> str:
    """At most so many characters, which can be printed, on one or more lines."""
    if _is_line(text, chars_max):
        return text
    return "".join(each if each.isprintable() or each == "\n" else "?" for each in text[:chars_max])
