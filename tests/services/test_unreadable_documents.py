"""A document that cannot be read keeps no server from starting and no list from being shown, and nobody overwrites it
by the way: a newer version of mendflow may have written it."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from mendflow.core.model.errors import Conflict
from mendflow.core.model.flow import Flow, JobActivity
from mendflow.core.model.ids import FlowName
from mendflow.core.recovery.patterns import JobPattern, Patterns
from mendflow.services.api.domain import Domain
from mendflow.services.base.alerts import ALERT_KIND
from mendflow.services.base.cluster import ENGINE_KIND
from mendflow.services.cases.flows import FLOW_KIND
from mendflow.services.cases.user_tasks import TASK_KIND
from mendflow.services.data.catalogue.elements import STORAGE_KIND
from mendflow.services.data.flow_triggers import TRIGGERS_KIND
from mendflow.services.data.sets.store import SET_KIND
from mendflow.services.data.watches.service import WATCH_KIND
from mendflow.services.domains.connections import CONNECTION_KIND
from mendflow.services.domains.work_documents import SENT_KIND
from mendflow.services.observe.notifications.webhooks import WEBHOOK_KIND
from mendflow.services.recovery.decisions import DECISION_KIND
from mendflow.services.recovery.proxy.patterns import PATTERN_KIND
from mendflow.services.recovery.rules.store import RULES_KIND
from mendflow.services.recovery.sources import SOURCE_KIND
from mendflow.services.recovery.unwinding import COMPENSATION_KIND
from mendflow.services.retention.service import AUTOMATIC, RULE_KIND
from mendflow.services.schedules.store import SCHEDULE_KIND
from mendflow.services.scheduling.drained_pilots import DRAIN_KIND
from mendflow.services.scheduling.pilot_owners import OWNER_KIND
from mendflow.services.scheduling.project_service import PROJECT_KIND
from mendflow.services.scheduling.sites.site_store import SITE_KIND
from mendflow.stores.contract import Put
from mendflow.stores.memory import MemoryStore
from tests.contract.documents import done
from tests.services.conftest import server_on
from tests.services.test_repairs import rules_for

UNREADABLE = b'{"conversation": 3, "repair": 3}'
KINDS = (
    ALERT_KIND,
    COMPENSATION_KIND,
    CONNECTION_KIND,
    DECISION_KIND,
    DRAIN_KIND,
    ENGINE_KIND,
    FLOW_KIND,
    OWNER_KIND,
    PATTERN_KIND,
    PROJECT_KIND,
    RULES_KIND,
    RULE_KIND,
    SCHEDULE_KIND,
    SENT_KIND,
    SET_KIND,
    SITE_KIND,
    SOURCE_KIND,
    STORAGE_KIND,
    TASK_KIND,
    TRIGGERS_KIND,
    WATCH_KIND,
    WEBHOOK_KIND,
)


@asynccontextmanager
async def domain_beside(kind: str, folder: Path, id: str = "other") -> AsyncIterator[tuple[Domain, MemoryStore]]:
    """A domain on a store with a document of this kind that cannot be read, and is there afterwards as it was."""
    store = MemoryStore()
    await store.open()
    written = await done(store, Put(kind, id, UNREADABLE, 0))
    server = server_on(store, folder)
    await server.open()
    try:
        yield Domain(server), store
        found = await store.get(kind, id)
        assert found is not None and (found.version, found.body) == (written, UNREADABLE)
    finally:
        await server.close()


@pytest.mark.parametrize("kind", KINDS)
async def test_a_server_starts_and_lists_beside_what_it_cannot_read(
    kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR, "mendflow.documents"):
        async with domain_beside(kind, tmp_path) as (domain, _):
            for _ in range(2):
                assert await domain.worklist() == []
                assert await domain.decisions() == []
                assert await domain.failures() == []
            assert await domain.compensations() == []
            assert await domain.schedules() == []
            assert await domain.rule_sources() == []
            assert await domain.data_sets(every=True) == []
            assert await domain.retention_rules() == []
            assert await domain.elements() == []
            assert await domain.alerts(every=True) == []
            await domain.sites()
            await domain.watches()
            await domain.overview()
    told = [each.getMessage() for each in caplog.records if each.name == "mendflow.documents"]
    assert len(told) == 1 and told[0].startswith(f"the {kind} other cannot be read and is left out: "), told


async def test_the_note_of_the_last_look_is_no_rule_of_retention(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = MemoryStore()
    await store.open()
    await done(store, Put(RULE_KIND, AUTOMATIC, b'{"at":1}', 0))
    server = server_on(store, tmp_path)
    await server.open()
    try:
        assert await Domain(server).retention_rules() == []
    finally:
        await server.close()
    assert "cannot be read" not in caplog.text


def flow(name: str = "f") -> Flow:
    return Flow(name=FlowName(name), body=JobActivity(name="a", command="true"))


async def test_what_cannot_be_read_is_not_replaced_by_the_way(tmp_path: Path) -> None:
    async with domain_beside(COMPENSATION_KIND, tmp_path / "c", "align") as (domain, _):
        await domain.deploy(flow())
        with pytest.raises(Conflict, match="compensation 'align' already, which this version of mendflow cannot read"):
            await domain.register_compensation("align", "f", who="ann")
    async with domain_beside(PATTERN_KIND, tmp_path / "p", "night") as (domain, _):
        with pytest.raises(Conflict, match="pattern 'night' already"):
            await domain.add_patterns(
                Patterns(conversations=(JobPattern(name="night", messages="submit run"),)), who="ann"
            )
    async with domain_beside(FLOW_KIND, tmp_path / "f", "f") as (domain, _):
        with pytest.raises(Conflict, match="flow 'f' already"):
            await domain.start_with_flow(flow(), {}, who="ann")
    async with domain_beside(RULES_KIND, tmp_path / "r", "f") as (domain, _):
        with pytest.raises(Conflict, match="rules 'f' already"):
            await domain.put_rules(replace(rules_for("f", again="true"), version=0), who="ann", expected=0)


async def test_what_cannot_be_read_can_be_removed(tmp_path: Path) -> None:
    store = MemoryStore()
    await store.open()
    await done(store, Put(COMPENSATION_KIND, "align", UNREADABLE, 0))
    server = server_on(store, tmp_path)
    await server.open()
    try:
        assert await Domain(server).register_compensation("align", "", who="ann") == []
        assert await store.get(COMPENSATION_KIND, "align") is None
    finally:
        await server.close()
