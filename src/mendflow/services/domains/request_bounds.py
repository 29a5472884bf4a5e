"""How much a request of another domain may hold."""

from typing import Final

from mendflow.core.model.domains import DomainRequest, SentWork, WorkClaim, WorkRef
from mendflow.core.model.errors import InvalidRequest
from mendflow.services.cases.case_starter import demand_key

SENDER_CHARS_MAX: Final = 200
SENT_WORKS_MAX: Final = 1_000
FILES_MAX: Final = 10_000
"""Of one piece of work."""
CLAIMS_MAX: Final = 100_000


def demand_bounded(request: DomainRequest) -> None:
    """Refuse a request that no server of ours would send."""
    if not 0 < len(request.sender) <= SENDER_CHARS_MAX or not request.sender.isprintable():
        raise InvalidRequest(f"sender: a server is named in one line of at most {SENDER_CHARS_MAX} characters")
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
