"""A domain whose jobs are done by hand, deterministically: what ran can be told from what was taken from earlier
results."""

import hashlib
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import Flow
from mendflow.core.model.jobs import JobSpec, Outcome
from mendflow.core.model.values import FileRef
from mendflow.services.api.domain import Domain
from mendflow.services.runtime.server import Server
from tests.services.conftest import HandPilot

FAILED = Outcome(fault=Fault(name="exit", category=Category.JOB, message="exit code 1"))


class Lab:
    """A domain with a file store, and a pilot that makes files and remembers what it ran."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.domain = Domain(server)
        self.pilot = HandPilot(self.domain)
        self.ran: list[str] = []
        self.fails: set[str] = set()
        self.salt = ""

    async def keep(self, text: str) -> FileRef:
        async def chunks() -> AsyncIterator[bytes]:
            yield text.encode()

        return await self.server.file_store.keep("x.txt", chunks())

    async def samples(self, texts: list[str]) -> list[Any]:
        return [(await self.keep(text)).as_value() for text in texts]

    async def run(
        self,
        flow: Flow,
        inputs: dict[str, Any] | None = None,
        cache: Any = "declared",
        who: str = "me",
        **more: Any,
    ) -> str:
        """Run a case to its end; `ran` are then the items that were really run."""
        await self.domain.deploy(flow)
        case = (await self.domain.start(flow.name, inputs or {}, who=who, cache=cache, **more)).id
        await self.work()
        return case

    async def work(self) -> None:
        self.ran = []
        for _ in range(1000):
            await self.pilot.ask_for_all()
            if not self.pilot.held:
                return
            held = list(self.pilot.held)
            self.ran += [each.spec.item for each in held]
            await self.pilot.exchange({each.spec.item: await self.made(each.spec) for each in held})
        raise AssertionError("there is no end of jobs")

    async def made(self, spec: JobSpec) -> Outcome:
        """What a deterministic program would make of the same."""
        if spec.item.partition("[")[0] in self.fails:
            return FAILED
        seen = [spec.command, spec.args, sorted((path, ref.sha256) for path, ref in spec.inputs.items()), self.salt]
        text = hashlib.sha256(msgspec.json.encode(seen)).hexdigest()
        return Outcome(outputs={"text": text}, files={name: await self.keep(text + name) for name in spec.files})

    async def reasons(self, case: str) -> dict[str, str]:
        return {item.item: item.cache_reason for item in await self.domain.items(case)}

    async def states(self, case: str) -> dict[str, str]:
        return {item.item: item.state for item in await self.domain.items(case)}
