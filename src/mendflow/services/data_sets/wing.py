"""The wing of the house in which cases begin because of data: sets, what looks after them, and watched elements, put
together.

It hangs on the rest in three places: the catalogue tells it of files, the flow manager of ends, and it starts cases by
the way that people's cases are started."""

from mendflow.services.case_book import CaseDocument
from mendflow.services.catalogue import Catalogue
from mendflow.services.cluster.membership import OwnMembership
from mendflow.services.contracts import Clock, Keeper
from mendflow.services.data_sets.arrivals import Arrivals
from mendflow.services.data_sets.book import SetBook
from mendflow.services.data_sets.elements import Elements
from mendflow.services.data_sets.looking import Looker
from mendflow.services.data_sets.service import DataSets
from mendflow.services.data_sets.tending import Starting, Tending
from mendflow.services.data_sets.turns import Turns
from mendflow.services.data_sets.watches import Watches
from mendflow.services.flows import Flows
from mendflow.services.ledger import Ledger
from mendflow.services.notices import Notices
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

    def case_ended(self, document: CaseDocument) -> None:
        self._tending.case_ended(document)

    def start(self) -> None:
        self._tending.start()
        self.watches.start()

    async def stop(self) -> None:
        await self.watches.stop()
        await self._tending.stop()
