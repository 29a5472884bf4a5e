"""What a host keeps of other domains does not grow for ever, and is not forgotten too early."""

from pathlib import Path

from mendflow.core.model.domains import WorkRef
from mendflow.services.domains.host_leases import HostLeases
from mendflow.services.domains.hosted_runs import KEPT_MS
from mendflow.services.domains.hosted_work import SEATS_MAX
from mendflow.services.domains.work_documents import HOSTED_KIND, LEASE_KIND
from tests.services.domains.by_hand import HandOrigin, sent_job
from tests.services.domains.kit import Domains


async def test_work_is_remembered_from_its_end_on_however_long_it_took(tmp_path: Path) -> None:
    async with Domains(tmp_path) as domains:
        away, origin = domains.away, HandOrigin()
        hosted, register = away.runtime.domains.hosted, away.runtime.domains.runs.register
        await origin.say(hosted, sent_job())
        [work] = register.works.values()
        await register.change(work, taken_at=work.document.taken_at - 3 * KEPT_MS)
        origin.claims.clear()
        await origin.say(hosted, acknowledged=[WorkRef("k-1", 1)])
        now = away.server.clock.now()
        await register.purge(now - KEPT_MS)
        assert await away.store.get(HOSTED_KIND, "home/k-1") is not None
        await register.purge(now + KEPT_MS)
        assert await away.store.get(HOSTED_KIND, "home/k-1") is None


async def test_a_lease_by_the_meter_of_another_server_is_removed_when_it_has_ended(tmp_path: Path) -> None:
    async with Domains(tmp_path) as domains:
        store, ledger, now = domains.away.store, domains.away.runtime.ledger, [1_000]
        gone = HostLeases(store, ledger, meter="gone", meter_now=lambda: 5_000_000, guard_ms=1)
        await gone.extend("home", "s", 5_010_000, 10_000)
        ours = HostLeases(store, ledger, meter="ours", meter_now=lambda: now[0], guard_ms=1)
        await ours.look()
        await ours.purge(lambda *_: False)
        assert await store.get(LEASE_KIND, "home/s") is not None
        now[0] += 10_001
        await ours.purge(lambda *_: True)
        assert await store.get(LEASE_KIND, "home/s") is not None
        await ours.purge(lambda *_: False)
        assert await store.get(LEASE_KIND, "home/s") is None
        assert not ours.are_some


async def test_of_a_domain_that_is_disconnected_no_lease_is_known_whoever_stored_it(tmp_path: Path) -> None:
    async with Domains(tmp_path) as domains:
        store, ledger = domains.away.store, domains.away.runtime.ledger
        other = HostLeases(store, ledger, meter="other", meter_now=lambda: 1_000, guard_ms=1)
        await other.extend("home", "s", 9_000, 8_000)
        ours = HostLeases(store, ledger, meter="ours", meter_now=lambda: 1_000, guard_ms=1)
        await ours.look()
        assert ours.are_some
        await ours.forget("home")
        assert not ours.are_some


async def test_an_origin_that_names_ever_new_servers_fills_no_memory(tmp_path: Path) -> None:
    async with Domains(tmp_path) as domains:
        hosted = domains.away.runtime.domains.hosted
        keeps = HandOrigin(sender="keeps")
        await keeps.say(hosted, sent_job("kept"))
        for number in range(SEATS_MAX + 20):
            await HandOrigin(sender=f"new-{number}").say(hosted)
        assert len(hosted._seats) == SEATS_MAX
        assert ("home", "keeps") in hosted._seats
        assert (await keeps.say(hosted)).keys() <= {"kept"} and domains.away.runtime.manager.live
