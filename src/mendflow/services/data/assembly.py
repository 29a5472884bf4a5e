"""Puts together the services that start cases because of data: data sets, their controller, and watched folders.

The catalogue publishes new files and the flow manager publishes ends of cases, both through the hub; cases are started
in the same way as those that people start."""

from mendflow.services.base.contracts import Clock, EndReceivers, FileStore
from mendflow.services.base.hub import Hub
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.membership import OwnMembership
from mendflow.services.base.notices import Notices
from mendflow.services.base.responsibility import Responsibility
from mendflow.services.cases.facts import CaseEnded
from mendflow.services.cases.flows import Flows
from mendflow.services.data.catalogue.catalogue import Catalogue, NewFiles
from mendflow.services.data.flow_triggers import FlowTriggerStore
from mendflow.services.data.sets.arrivals import Arrivals
from mendflow.services.data.sets.batches import CaseLauncher, DataSetController
from mendflow.services.data.sets.service import DataSets
from mendflow.services.data.sets.store import DataSetStore
from mendflow.services.data.watches.scan import FolderScanner
from mendflow.services.data.watches.service import WatchService
from mendflow.services.data.watches.storage import StorageReader
from mendflow.stores.contract import Store


class DataServices:
    def __init__(
        self,
        *,
        store: Store,
        ledger: Ledger,
        clock: Clock,
        file_store: FileStore,
        membership: OwnMembership,
        catalogue: Catalogue,
        elements: StorageReader,
        flows: Flows,
        starting: CaseLauncher,
        notices: Notices,
        hub: Hub,
    ) -> None:
        set_store = DataSetStore(store, clock)
        arrivals = Arrivals(
            set_store=set_store, catalogue=catalogue, file_store=file_store, clock=clock, notices=notices
        )
        self._controller = DataSetController(
            store=store,
            ledger=ledger,
            clock=clock,
            membership=membership,
            set_store=set_store,
            arrivals=arrivals,
            starting=starting,
            notices=notices,
        )
        self.triggers = FlowTriggerStore(store, ledger, clock)
        self.sets = DataSets(set_store=set_store, arrivals=arrivals, controller=self._controller, flows=flows)
        self.watches = WatchService(
            store=store,
            clock=clock,
            turns=Responsibility(membership),
            looker=FolderScanner(clock=clock, sets=self.sets, catalogue=catalogue, elements=elements, notices=notices),
            find=catalogue.elements.get,
            sets=self.sets,
            flow_watches=self.triggers.watches,
        )
        hub.subscribe(CaseEnded, lambda end: self._controller.case_ended(end.document))
        hub.provide(NewFiles, self.sets)
        hub.provide(EndReceivers, self.triggers)

    async def read_shared(self) -> None:
        await self.triggers.start()

    def start(self) -> None:
        self._controller.start()
        self.watches.start()

    async def stop(self) -> None:
        await self.watches.stop()
        await self._controller.stop()
