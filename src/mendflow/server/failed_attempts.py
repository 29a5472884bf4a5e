"""Attempts to get in with a token that nobody has: counted, logged once in a while, and slowed down per address.

Each address has a number of failures to spend, which comes back with time. Who has spent it is answered at once, with
the time to wait, and nothing is computed for it any more. A token that is known is never slowed down: behind a proxy
everybody has one address, and somebody's forgotten script must not shut out the others."""

import ipaddress
import logging
import math
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from mendflow.core.model.errors import TooManyRequests

log = logging.getLogger("mendflow.server")

FAILURES_MAX: Final = 30
"""Failures that an address may have at once."""

RETURN_S: Final = 2.0
"""One of them comes back after this time."""

ADDRESSES_MAX: Final = 10_000
"""Addresses that are remembered; the one that failed longest ago is forgotten first."""

LOG_EVERY_S: Final = 60.0


class AttemptThrottle:
    """`count` is told the reason of each failure, for the metrics."""

    def __init__(
        self, count: Callable[[str], None] = lambda _reason: None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._count = count
        self._clock = clock
        self._empty_at: OrderedDict[str, float] = OrderedDict()  # when all failures of an address have come back
        self._unlogged: dict[str, int] = {}
        self._log_at = -math.inf

    def check(self, address: str) -> None:
        """Refuse who has failed too often of late."""
        if (wait_s := self._wait_s(address_group(address))) > 0:
            self._count("throttled")
            raise _too_many(wait_s)

    def note(self, address: str, reason: str) -> None:
        """Somebody at this address has failed; raises if it was too often of late."""
        group = address_group(address)
        wait_s = self._wait_s(group)
        if wait_s <= 0:
            self._empty_at[group] = max(self._empty_at.get(group, 0.0), self._clock()) + RETURN_S
            self._empty_at.move_to_end(group)
            if len(self._empty_at) > ADDRESSES_MAX:
                self._empty_at.popitem(last=False)
        self._count("throttled" if wait_s > 0 else reason)
        self._log(group, reason)
        if wait_s > 0:
            raise _too_many(wait_s)

    def _wait_s(self, group: str) -> float:
        """How long until one more failure is left to spend; 0 if there is one."""
        spent_s = self._empty_at.get(group, 0.0) - self._clock()
        return max(0.0, spent_s - (FAILURES_MAX - 1) * RETURN_S)

    def _log(self, group: str, reason: str) -> None:
        self._unlogged[group] = self._unlogged.get(group, 0) + 1
        now = self._clock()
        if now < self._log_at and len(self._unlogged) < ADDRESSES_MAX:
            return
        total, worst = sum(self._unlogged.values()), max(self._unlogged, key=lambda each: self._unlogged[each])
        log.warning(
            "refused %d requests from %d addresses, most from %s (the last one: %s); look at who asks there, or give"
            " it a token: mendflow admin tokens create",
            total,
            len(self._unlogged),
            worst or "an unknown address",
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


def address_group(address: str) -> str:
    """What is counted together: an address, and of IPv6 the network that one machine usually has for itself."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is None and not parsed.is_loopback:
        return str(ipaddress.ip_network((int(parsed) >> 64 << 64, 64)))
    return str(getattr(parsed, "ipv4_mapped", None) or parsed)
