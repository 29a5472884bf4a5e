"""A notification on its way to a webhook: signed for whoever wants it signed, and brought until it is taken."""

from collections.abc import Awaitable, Callable

import msgspec

from mendflow.core.model.alerts import Notification
from mendflow.services.base.contracts import Clock
from mendflow.services.base.delivery import PATIENCE_MS, Carrier
from mendflow.services.base.poster import Poster
from mendflow.services.observe.notifications.signing import EVENT, KIND, SIGNATURE, signature

_encode = msgspec.json.Encoder().encode


class Deliveries:
    def __init__(self, *, clock: Clock, poster: Poster, chance: Callable[[], float]) -> None:
        self._clock = clock
        self._poster = poster
        self._carrier = Carrier(clock, chance)
        self.patience_ms = PATIENCE_MS

    async def once(self, url: str, secret: str, told: Notification) -> str:
        """One try; empty if it was taken."""
        body = _encode(told)
        headers = {"Content-Type": "application/json", EVENT: told.id, KIND: told.kind}
        if secret:
            headers[SIGNATURE] = signature(secret, body, self._clock.now())
        return await self._poster.post(url, body, headers)

    async def bring(
        self,
        url: str,
        told: Notification,
        *,
        tries: int,
        secret: Callable[[], str | None],
        failed: Callable[[int], Awaitable[None]],
    ) -> str:
        """Until it is taken, or nobody wants it any more (`secret` gives None), or the time is over: then why it failed
        last."""

        async def attempt() -> str | None:
            known = secret()
            return None if known is None else await self.once(url, known, told)

        until = told.at + self.patience_ms
        return await self._carrier.bring(url, attempt, tries=tries, until=until, failed=failed)
