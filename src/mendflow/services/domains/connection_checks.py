"""What an administrator may say of a connected domain: its addresses, and what it may do here."""

from collections.abc import Sequence
from typing import Final

from mendflow.address_guard import ANYWHERE, check_url
from mendflow.core.model.domains import DomainRights
from mendflow.core.model.errors import InvalidRequest

URLS_MAX: Final = 20
MINUTES_MAX: Final = 7 * 24 * 60


def check_rights(rights: DomainRights) -> None:
    if rights.work_max < 0 or rights.bytes_max < 0:
        raise InvalidRequest("a domain may have 0 or more pieces of work and bytes here", field="rights")


def check_urls(urls: Sequence[str]) -> None:
    if len(urls) > URLS_MAX:
        raise InvalidRequest(f"a domain has at most {URLS_MAX} addresses", field="urls")
    for url in urls:
        try:
            check_url(url, guard=ANYWHERE)
        except InvalidRequest as error:
            raise InvalidRequest(
                f"{url[:100]!r} is not the address of a server: write one such as https://one.example.org:8642",
                field="urls",
            ) from error


def check_minutes(minutes: int) -> None:
    if not 1 <= minutes <= MINUTES_MAX:
        raise InvalidRequest(f"an invitation holds for 1 to {MINUTES_MAX} minutes", field="minutes")
