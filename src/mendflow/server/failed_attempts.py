"""Attempts to get in with a token that nobody has: counted, logged once in a while, and slowed down per address.

Each address has a number of failures to spend, which comes back with time. Who has spent it is answered at once, with
the time to wait, and nothing is computed for it any more. A token that is known is never slowed down: behind a proxy
everybody has one address, and somebody's forgotten script must not shut out the others."""

import ipaddress
import logging
import math
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from mendflow.core.model.errors import TooManyRequests
from mendflow.services.base.buckets import BoundedCounts, Bucket, BucketTable

log = logging.getLogger("mendflow.server")

FAILURES_MAX: Final = 30
"""Failures that an address may have at once."""

RETURN_S: Final = 2.0
"""One of them comes back after this time."""

ADDRESSES_MAX: Final = 10_000
"""Addresses that are remembered; the one that failed longest ago is forgotten first."""

LOG_EVERY_S: Final = 60.0

NOTHING_SHOWN: Final = "none"
"""The reason of a request without any token. It guesses nothing, so it is counted and no more."""


class AttemptThrottle:
    """`count` is told the reason of each failure, for the metrics."""

    def __init__(
        self, count: Callable[[str], None] = lambda _reason: None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._count = count
        self._clock = clock
        self._failures = BucketTable(lambda now: Bucket(1 / RETURN_S, FAILURES_MAX, now), ADDRESSES_MAX)
        self._unlogged = BoundedCounts(ADDRESSES_MAX)
        self._log_at = -math.inf

    def check(self, address: str) -> None:
        """Refuse who has failed too often of late."""
        found = self._failures.find(address_group(address))
        if found is not None and (wait_s := found.wait_s(1, self._clock())):
            self._count("throttled")
            raise _too_many(wait_s)

    def note(self, address: str, reason: str) -> None:
        """Somebody at this address has failed; raises if it was too often of late."""
        if reason == NOTHING_SHOWN:
            self._count(reason)
            return
        group, now = address_group(address), self._clock()
        wait_s = self._failures.of(group, now).try_take(1, now)
        self._count("throttled" if wait_s else reason)
        self._log(group, reason, now)
        if wait_s:
            raise _too_many(wait_s)

    def _log(self, group: str, reason: str, now: float) -> None:
        """One line in a while, however many addresses there are."""
        self._unlogged.add(group)
        if now < self._log_at:
            return
        log.warning(
            "refused %d requests from %d addresses%s, most from %s (the last one: %s); look at who asks there, or give"
            " it a token: mendflow admin tokens create",
            self._unlogged.total,
            len(self._unlogged),
            " or more" if self._unlogged.others else "",
            self._unlogged.most or "an unknown address",
            reason,
        )
        self._unlogged.clear()
        self._log_at = now + LOG_EVERY_S


def _too_many(wait_s: float) -> TooManyRequests:
    pause_s = max(1, math.ceil(wait_s))
    return TooManyRequests(
        f"too many requests with tokens that this server does not know came from your address: wait {pause_s} s, and"
        " send a token that is yours",
        retry_after_s=pause_s,
    )


@lru_cache(maxsize=1024)
def address_group(address: str) -> str:
    """What is counted together: an address, and of IPv6 the network that one machine usually has for itself."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is None and not parsed.is_loopback:
        return str(ipaddress.ip_network((int(parsed) >> 64 << 64, 64)))
    return str(getattr(parsed, "ipv4_mapped", None) or parsed)
