"""What a server has beside its services, and gives them when they are built."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from mendflow.core.model.ids import Instant
from mendflow.core.model.rules import RuleSet
from mendflow.core.recovery.patterns import Patterns
from mendflow.services.base.clock import Meter
from mendflow.services.base.cluster import Peers
from mendflow.services.base.contracts import Clock, MetaScheduler
from mendflow.services.base.counters import ServerMetrics
from mendflow.services.base.hidden_texts import HiddenTexts
from mendflow.services.base.long_reads import LongReads
from mendflow.services.base.membership import OwnMembership
from mendflow.services.base.poster import Poster
from mendflow.services.base.secret_sources import SecretSources
from mendflow.services.base.source_reader import SourceReader
from mendflow.services.base.stopped_cases import StoppedCases
from mendflow.services.base.watched_files import WatchedFileStore
from mendflow.services.cases.flow_compiler import FlowCompiler
from mendflow.services.cases.long_steps import LongSteps
from mendflow.services.cases.staging import TableReader
from mendflow.services.data.watches.storage import StorageReader
from mendflow.services.domains.domain_lines import DomainLines, PeerLines
from mendflow.services.messaging.contracts import PartnerClient
from mendflow.services.messaging.ports.jobs import JobReader
from mendflow.services.messaging.style_sheets import Transformer
from mendflow.services.observe.tracing.tracer import Tracer
from mendflow.services.runtime.settings import ServerSettings
from mendflow.services.scheduling.sites.batch_systems import SiteBatchSystems
from mendflow.services.scheduling.unprocessed_reports import UnprocessedReports
from mendflow.stores.contract import Store

if TYPE_CHECKING:
    from mendflow.services.runtime.runtime import Runtime


class ServerContext(Protocol):
    """What services are built from: it stays when they are thrown away and rebuilt."""

    settings: ServerSettings
    version: str
    store: Store
    file_store: WatchedFileStore
    clock: Clock
    meter: Meter
    counts: ServerMetrics
    tracer: Tracer | None
    membership: OwnMembership
    peers: Peers
    poster: Poster
    source_reader: SourceReader
    caller: PartnerClient
    transformer: Transformer
    long_steps: LongSteps | None
    url: str
    read_job: JobReader
    long_reads: LongReads
    flow_compiler: FlowCompiler
    read_table: TableReader
    elements: StorageReader
    batch_systems: SiteBatchSystems | None
    domains: Mapping[str, MetaScheduler]
    lines: DomainLines
    domain_name: str
    peer_lines: PeerLines
    meter_name: str
    way_to_queue: Callable[[MetaScheduler], MetaScheduler]
    shipped: RuleSet | None
    patterns: Patterns
    chance: Callable[[int], str]
    wall: Callable[[], Instant]
    stopped: StoppedCases
    unprocessed_reports: UnprocessedReports
    hidden: HiddenTexts
    secret_sources: SecretSources

    def files_roots(self) -> tuple[Path, ...] | None: ...

    def on_broken(self, runtime: "Runtime", reason: str) -> None: ...
