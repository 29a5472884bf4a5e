"""Puts the services of retention together."""

from collections.abc import Callable
from pathlib import Path

from mendflow.services.base.contracts import Clock, FileStore
from mendflow.services.base.homes import HomeRegistry
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.membership import OwnMembership
from mendflow.services.base.notices import Notices
from mendflow.services.retention.case_remover import CaseRemover
from mendflow.services.retention.pruned_cases import PrunedCases
from mendflow.services.retention.pruner import Pruner
from mendflow.services.retention.references import ReferenceReader
from mendflow.services.retention.service import Retention
from mendflow.stores.contract import Store


def retention_services(
    *,
    store: Store,
    ledger: Ledger,
    clock: Clock,
    homes: HomeRegistry,
    file_store: FileStore,
    membership: OwnMembership,
    notices: Notices,
    reports: Path | None = None,
    quiet: bool,
    new_id: Callable[[], str],
) -> Retention:
    """`reports` is the folder in which reports of cases are, if there is one. `quiet`: nobody but the caller uses
    this server."""
    notes, reader = PrunedCases(store), ReferenceReader(store, file_store)
    pruner = Pruner(
        store=store,
        clock=clock,
        file_store=file_store,
        notes=notes,
        reader=reader,
        remover=CaseRemover(store, ledger, homes, notes, reader),
        reports=reports,
        quiet=quiet,
    )
    return Retention(
        store=store,
        ledger=ledger,
        clock=clock,
        membership=membership,
        notices=notices,
        notes=notes,
        pruner=pruner,
        file_store=file_store,
        new_id=new_id,
    )
