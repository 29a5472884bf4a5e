"""Deployed flows: the newest version of each by name, and every version by number. Cases carry their flow with them,
so a new version holds for new cases only."""

import hashlib
import logging
import re
from collections.abc import Iterator

import msgspec

from mendflow.core.engine import compile_flow
from mendflow.core.engine.plan import below
from mendflow.core.model.flow import Flow, Mend
from mendflow.core.model.ids import Instant
from mendflow.core.model.problems import BadFlow, NotFound
from mendflow.core.model.views import FlowView
from mendflow.core.recovery.steps import step_problems
from mendflow.services.contracts import Clock
from mendflow.services.ledger import Ledger
from mendflow.stores.contract import Store

FLOW_KIND = "flow"

# A flow's name becomes part of ids, addresses and folders, so one that could be mistaken for a path is refused.
# Made-up names of called flows contain dots, which given names do not.
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,99}")


class FlowDocument(msgspec.Struct, kw_only=True):
    name: str
    digest: str
    version: int
    deployed_at: Instant
    flow: Flow

    def view(self, *, whole: bool) -> FlowView:
        return FlowView(
            name=self.name,
            digest=self.digest,
            version=self.version,
            deployed_at=self.deployed_at,
            description=self.flow.description,
            flow=self.flow if whole else None,
        )


log = logging.getLogger("mendflow.flows")
_decode = msgspec.json.Decoder(FlowDocument).decode


def check_names(flow: Flow) -> None:
    """Refuse names of flows that could do harm, in the flow and in those that came with it."""
    if bad := [name for name in _names(flow) if not _NAME.fullmatch(name)]:
        rule = "use letters, digits, _ and -, a letter first, at most 100"
        raise BadFlow(problems=[f"{name[:100]!r} is no name for a flow: {rule}" for name in bad])


def _names(flow: Flow) -> Iterator[str]:
    yield flow.name
    for called in flow.calls:
        yield from _names(called)


class Flows:
    def __init__(self, store: Store, ledger: Ledger, clock: Clock) -> None:
        self._store = store
        self._ledger = ledger
        self._clock = clock
        self._newest: dict[str, FlowDocument] = {}

    async def start(self) -> None:
        async for found in self._store.scan(FLOW_KIND):
            if self._ledger.busy(FLOW_KIND, found.id):
                continue
            self._ledger.known(FLOW_KIND, found.id, found.version)
            try:
                self._newest[found.id] = _decode(found.body)
            except msgspec.MsgspecError:
                log.exception("the deployed flow %s cannot be read; deploy it again", found.id)

    @staticmethod
    def digest(flow: Flow) -> str:
        return hashlib.sha256(msgspec.json.encode(flow)).hexdigest()[:16]

    def deploy(self, flow: Flow) -> FlowView:
        """Make this the newest version. The same flow again is the same version."""
        check_names(flow)
        compile_flow(flow)
        if problems := list(step_problems(each for each in below(flow) if isinstance(each, Mend))):
            raise BadFlow(problems=problems)
        digest = self.digest(flow)
        newest = self._newest.get(flow.name)
        if newest is not None and newest.digest == digest:
            return newest.view(whole=False)
        version = newest.version + 1 if newest else 1
        document = FlowDocument(
            name=flow.name, digest=digest, version=version, deployed_at=self._clock.now(), flow=flow
        )
        self._newest[flow.name] = document
        self._ledger.touch(FLOW_KIND, flow.name, document)
        self._ledger.touch("flow-version", f"{flow.name}@{version}", document, last=True)
        return document.view(whole=False)

    def all(self) -> list[FlowView]:
        return [document.view(whole=False) for _, document in sorted(self._newest.items())]

    def newest(self, name: str) -> FlowDocument:
        document = self._newest.get(name)
        if document is None:
            known = ", ".join(sorted(self._newest)) or "none is deployed yet"
            raise NotFound(f"there is no flow {name!r} here (known: {known}); `mendflow deploy FILE` makes it known")
        return document

    async def find(self, name: str) -> tuple[Flow, str]:
        document = self.newest(name)
        return document.flow, document.digest
