"""What starts cases because of data, put together: data sets, what looks after them, and watched folders.

The catalogue tells it of new files and the flow manager of ends, both through the hub; cases are started in the same
way as those that people start."""

from mendflow.services.base.contracts import Clock, Keeper
from mendflow.services.base.hub import Hub
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.membership import OwnMembership
from mendflow.services.base.notices import Notices
from mendflow.services.cases.facts import CaseEnded
from mendflow.services.cases.flows import Flows
from mendflow.services.data.catalogue.catalogue import Catalogue, NewFiles
from mendflow.services.data.sets.arrivals import Arrivals
from mendflow.services.data.sets.batches import Starting, Tending
from mendflow.services.data.sets.responsibility import Turns
from mendflow.services.data.sets.service import DataSets
from mendflow.services.data.sets.store import SetBook
from mendflow.services.data.watches.scan import Looker
from mendflow.services.data.watches.service import Watches
from mendflow.services.data.watches.storage import Elements
from mendflow.stores.contract import Store


class DataWing:
    def __init__(
        self,
        *,
        store: Store,
        ledger: Ledger,
        clock: Clock,
        keeper: Keeper,
        membership: OwnMembership,
        catalogue: Catalogue,
        elements: Elements,
        flows: Flows,
        starting: Starting,
        notices: Notices,
        hub: Hub,
    ) -> None:
        book = SetBook(store, clock)
        arrivals = Arrivals(book=book, catalogue=catalogue, keeper=keeper, clock=clock, notices=notices)
        self._tending = Tending(
            store=store,
            ledger=ledger,
            clock=clock,
            membership=membership,
            book=book,
            arrivals=arrivals,
            starting=starting,
            notices=notices,
        )
        self.sets = DataSets(book=book, arrivals=arrivals, tending=self._tending, flows=flows)
        self.watches = Watches(
            store=store,
            clock=clock,
            turns=Turns(membership),
            looker=Looker(clock=clock, sets=self.sets, catalogue=catalogue, elements=elements, notices=notices),
            find=catalogue.elements.get,
        )
        hub.subscribe(CaseEnded, lambda end: self._tending.case_ended(end.document))
        hub.provide(NewFiles, self.sets)

    def start(self) -> None:
        self._tending.start()
        self.watches.start()

    async def stop(self) -> None:
        await self.watches.stop()
        await self._tending.stop()
