"""Simulated servers that are connected with other domains, over the simulated network."""

import asyncio
import re
import zlib
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from random import Random
from typing import Final

import msgspec
from msgspec.structs import replace

from mendflow.core.model.domains import PROTOCOL, DomainAnswer, DomainRequest, DomainRights
from mendflow.core.model.errors import Forbidden, InvalidRequest, RequestError, Unreachable
from mendflow.core.model.flow import Flow, Input, PrimitiveStep, Scope
from mendflow.core.model.ids import FlowName, JobId
from mendflow.core.model.jobs import JobSpec, Outcome
from mendflow.core.model.repair import ExceptionType, Primitive
from mendflow.core.model.rules import Rule, RuleSet, RuleTree
from mendflow.services.api.domain import Domain
from mendflow.services.base.contracts import Callback, CapacityReport, MetaScheduler, NewJob, Status
from mendflow.services.domains.assembly import DomainServices
from mendflow.services.domains.connections import ConnectionsChanged, DomainDisconnected
from mendflow.services.domains.domain_lines import DomainLine
from mendflow.services.runtime.server import Server, ServerSettings
from mendflow.services.scheduling.pilot_scheduler import PilotScheduler
from mendflow.sim.machines import Machine, VirtualProcess
from mendflow.sim.network import Answer, Network, NoAnswer
from mendflow.sim.servers import RequestRouter, VirtualServer
from mendflow.sim.virtual_store import VirtualStore

EXCHANGE_PATH: Final = "/domain/exchange/"
PATIENCE_S: Final = 2.0
_OWN_JOB: Final = re.compile(r"flow-\d+-[0-9a-f]{6}/")
_REFUSALS: Final[dict[int, type[RequestError]]] = {each.status: each for each in (Forbidden, InvalidRequest)}
_encode = msgspec.json.Encoder().encode
_decode_request = msgspec.json.Decoder(DomainRequest).decode
_decode_answer = msgspec.json.Decoder(DomainAnswer).decode


class PeerTrouble:
    """What a domain does to others at this moment: those that it has `disconnected` by force are refused, and nothing
    is sent to them. Its `version` is another one: "newer", which they refuse, or one with "more fields", which they
    ignore."""

    def __init__(self) -> None:
        self.disconnected: set[str] = set()
        self.dropped: set[str] = set()  # those whose outcomes it may have dropped: that it has ever disconnected
        self.version = ""


class VirtualLine:
    """The line to another domain: to one of its servers, and to the next when that does not answer."""

    def __init__(
        self,
        network: Network,
        process: VirtualProcess,
        origin: str,
        host: str,
        addresses: Sequence[str],
        trouble: PeerTrouble,
    ) -> None:
        self._host = host
        self._trouble = trouble
        self._network = network
        self._process = process
        self._path = f"{EXCHANGE_PATH}{origin}"
        self._addresses = addresses
        self._turn = 0

    async def exchange(self, request: DomainRequest) -> DomainAnswer:
        if self._host in self._trouble.disconnected:
            raise Unreachable(f"{self._host} was disconnected by force")
        address = self._addresses[self._turn % len(self._addresses)]
        patience_s = request.hold_ms / 1_000 + PATIENCE_S
        try:
            status, answer = await self._network.call(
                self._process, address, self._path, self._body(request), patience_s
            )
        except NoAnswer as error:
            self._turn += 1
            raise Unreachable(str(error)) from None
        if status in _REFUSALS:
            raise _REFUSALS[status](answer.decode(errors="replace"))
        if status != 200:
            self._turn += 1
            raise Unreachable(f"{status}: {answer.decode(errors='replace')}")
        return _decode_answer(answer)

    def _body(self, request: DomainRequest) -> bytes:
        if self._trouble.version == "newer":
            request = replace(request, protocol=PROTOCOL + 1)
        body = _encode(request)
        return b'{"said_by_later_versions":[1],' + body[1:] if self._trouble.version == "more fields" else body

    async def missing_from(self, sha256: str) -> int | None:
        raise AssertionError("there are no files in this world")

    async def put_file(self, sha256: str, chunks: AsyncIterator[bytes], offset: int = 0) -> None:
        raise AssertionError("there are no files in this world")

    def get_file(self, sha256: str, offset: int = 0) -> AsyncIterator[bytes]:
        raise AssertionError("there are no files in this world")


class DomainRequestRouter(RequestRouter):
    def __init__(self, server: Server, domain: Domain, trouble: PeerTrouble) -> None:
        super().__init__(server, domain)
        self._server = server
        self._trouble = trouble

    async def answer(self, path: str, body: bytes, hung_up: asyncio.Event) -> Answer:
        if not path.startswith(EXCHANGE_PATH):
            return await super().answer(path, body, hung_up)
        origin = path.removeprefix(EXCHANGE_PATH)
        if origin in self._trouble.disconnected:
            return Forbidden.status, b"your domain is not connected here"
        try:
            hosted = self._server.runtime.domains.hosted
            return 200, _encode(await hosted.exchange(origin, DomainRights(), _decode_request(body)))
        except RequestError as error:
            return error.status, error.message.encode()


class SpreadJobs(ABC):
    """Sends each job somewhere: to our own queue, or to one of the other domains. A subclass says where."""

    def __init__(self, queue: MetaScheduler) -> None:
        assert isinstance(queue, PilotScheduler)
        self._queue = queue

    @abstractmethod
    def domain_of(self, job: JobId, spec: JobSpec | None = None) -> str:
        """The domain of a job, always the same one; empty: our own. It is described when it is submitted."""

    @staticmethod
    def is_own(job: JobId) -> bool:
        """Whether a job is of a flow of this domain, and not one that another has sent."""
        return _OWN_JOB.match(job) is not None

    def _of(self, id: JobId, spec: JobSpec | None = None) -> MetaScheduler:
        domain, services = self.domain_of(id, spec), self._queue.hub.provider(DomainServices)
        return services.peer(domain) if domain and services else self._queue

    async def submit(self, jobs: Sequence[NewJob], *, reissued: bool = False) -> None:
        for job in jobs:
            await self._of(job.id, job.spec).submit([job], reissued=reissued)

    async def run(self, job: NewJob, *, reissued: bool = False) -> Outcome:
        return await self._of(job.id, job.spec).run(job, reissued=reissued)

    async def status(self, id: JobId) -> Status:
        return await self._of(id).status(id)

    async def subscribe(self, id: JobId, callback: Callback) -> None:
        await self._of(id).subscribe(id, callback)

    async def suspend(self, id: JobId) -> None:
        await self._of(id).suspend(id)

    async def resume(self, id: JobId) -> None:
        await self._of(id).resume(id)

    async def cancel(self, id: JobId, *, reason: str = "") -> None:
        await self._of(id).cancel(id, reason=reason)

    async def capacity(self) -> CapacityReport:
        return await self._queue.capacity()


class ScatteredJobs(SpreadJobs):
    """Where a job goes follows from its id."""

    def __init__(self, queue: MetaScheduler, domains: Sequence[str]) -> None:
        super().__init__(queue)
        self._domains = (*domains, "")

    def domain_of(self, job: JobId, spec: JobSpec | None = None) -> str:
        return self._domains[zlib.crc32(job.encode()) % len(self._domains)] if self.is_own(job) else ""


def _exlet(name: str, step: PrimitiveStep) -> Flow:
    """An exlet as its file gives it: one input, whose roots are variables."""
    variables = {root: f"${{{{ inputs.context.{root} }}}}" for root in ("job",)}
    body = Scope(name=f"{name}.exlet", variables=variables, body=step)
    return Flow(name=FlowName(name), exlet=True, inputs={"context": Input(type="map", required=True)}, body=body)


def storm_rules(domains: Sequence[str]) -> RuleSet:
    """Whatever the infrastructure of one domain does to a job, another gets it, and after all of them the first; a call
    begins again."""
    named = ", ".join(f'"{each}"' for each in (*domains, "."))
    elsewhere = PrimitiveStep(
        name="again",
        do=Primitive.RESUBMIT,
        settings={"domain": f"${{{{ [{named}][job.generation % {len(domains) + 1}] }}}}"},
    )
    exlets = {
        "elsewhere": _exlet("elsewhere", elsewhere),
        "anew": _exlet("anew", PrimitiveStep(name="again", do=Primitive.RESTART)),
    }
    theirs = '(fault.infrastructure || fault.category == "refused")'
    rules = {
        0: Rule(id=0, condition=f'{theirs} && item.kind == "job" && job.final', exlet="elsewhere", on_false=1),
        1: Rule(id=1, condition=f'{theirs} && item.kind == "call"', exlet="anew"),
    }
    return RuleSet(name="*", trees={ExceptionType.ABORT: {"*": RuleTree(rules, 0)}}, exlets=exlets)


class DomainServer(VirtualServer):
    """A server of a domain. `neighbours` are the addresses of the servers of the other domains, by name."""

    def __init__(
        self,
        domain: str,
        neighbours: Mapping[str, Sequence[str]],
        machine: Machine,
        network: Network,
        store: VirtualStore,
        chance: Random,
        rules: ServerSettings,
        *,
        alone: bool,
        trouble: PeerTrouble,
    ) -> None:
        super().__init__(machine, network, store, chance, rules, alone=alone)
        self._trouble = trouble
        self.domain = domain
        self._neighbours = neighbours

    def _shipped(self) -> RuleSet | None:
        return storm_rules(sorted(self._neighbours))

    def _router(self, server: Server, domain: Domain) -> RequestRouter:
        return DomainRequestRouter(server, domain, self._trouble)

    def _way_to_queue(self, queue: MetaScheduler) -> MetaScheduler:
        return ScatteredJobs(queue, sorted(self._neighbours))

    def disconnect(self, other: str) -> bool:
        """Disconnect another domain by force; whether this server runs, and could do it."""
        process, runtime = self.process, self.runtime
        if process is None or runtime is None:
            return False

        async def publish() -> None:
            runtime.hub.publish(DomainDisconnected(other))
            runtime.hub.publish(ConnectionsChanged())

        process.spawn(publish())
        return True

    def _build(self, process: VirtualProcess, **more: object) -> Server:
        lines: dict[str, DomainLine] = {
            name: VirtualLine(self._network, process, self.domain, name, addresses, self._trouble)
            for name, addresses in self._neighbours.items()
        }
        return super()._build(
            process,
            peer_lines=lambda: lines,
            meter_name=self.machine.boot_name,
            way_to_queue=self._way_to_queue,
            chance=self._token,
            **more,
        )
