"""A server of an origin in the test's hands: it says to a host whatever the test wants, as a modified one could."""

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from itertools import count
from typing import Any

import msgspec

from mendflow.core.model.domains import (
    DomainAnswer,
    DomainRequest,
    DomainRights,
    SentWork,
    WorkClaim,
    WorkRef,
    WorkStatus,
)
from mendflow.core.model.flow import Flow
from mendflow.core.model.ids import ItemId
from mendflow.core.model.jobs import JobSpec
from mendflow.core.model.values import FileRef
from mendflow.services.domains.hosted_work import HostedWorks

_numbers = count(1)
Doing = Callable[[Coroutine[Any, Any, DomainAnswer]], Awaitable[DomainAnswer]]


async def _at_once(work: Coroutine[Any, Any, DomainAnswer]) -> DomainAnswer:
    return await work


class HandOrigin:
    def __init__(self, rights: DomainRights | None = None, *, origin: str = "home", sender: str = "") -> None:
        self.rights = rights or DomainRights()
        self.origin = origin
        self.sender = sender or f"s-{next(_numbers)}"
        self.serial = 0
        self.claims: dict[str, WorkClaim] = {}
        self.stamps: dict[int, tuple[int, str]] = {}

    async def say(
        self,
        host: HostedWorks,
        *sent: SentWork,
        acknowledged: Sequence[WorkRef] = (),
        do: Doing = _at_once,
        lease_ms: int = 120_000,
    ) -> dict[str, WorkStatus]:
        """One exchange, which claims all that was ever sent, unless the test has removed it from the claims."""
        if id(host) not in self.stamps:
            self.stamps[id(host)] = (0, "")
            await self.say(host, do=do, lease_ms=lease_ms)  # a lease needs a stamp of the host
        for each in sent:
            self.claims.setdefault(each.key, WorkClaim(each.key, each.fence))
        self.serial += 1
        stamp, meter = self.stamps[id(host)]
        request = DomainRequest(
            sender=self.sender,
            serial=self.serial,
            sent=sent,
            claims=tuple(self.claims.values()),
            granted_stamp=stamp,
            granted_meter=meter,
            lease_ms=lease_ms,
            acknowledged=tuple(acknowledged),
        )
        answer = await do(host.exchange(self.origin, self.rights, request))
        self.stamps[id(host)] = (answer.stamp, answer.meter)
        return {status.key: status for status in answer.works}


def sent_job(key: str = "k-1", fence: int = 1, *, files: Sequence[FileRef] = (), **more: Any) -> SentWork:
    spec = JobSpec(item=ItemId("align"), command="true", owner="ann", **more)
    return SentWork(key=key, fence=fence, name="align", job=spec, owner="ann", files=tuple(files))


def sent_flow(flow: Flow, key: str = "k-1", fence: int = 1) -> SentWork:
    return SentWork(key=key, fence=fence, name=flow.name, flow=msgspec.Raw(msgspec.json.encode(flow)), owner="ann")
