"""What projects and their users have used is told to other servers for as long as anything is left of it."""

from pathlib import Path

from mendflow.services.api.domain import Domain
from mendflow.services.scheduling.usage_service import USAGE_KIND
from mendflow.stores.memory import MemoryStore
from tests.services.conftest import HandPilot, server_on
from tests.services.test_project_quotas import start


async def test_whoever_used_something_long_ago_is_in_no_document(tmp_path: Path) -> None:  # SE-6
    store = MemoryStore()
    server = server_on(store, tmp_path)
    await server.open()
    domain, usage = Domain(server), server.runtime.projects.usage
    long_ago = server.clock.now() - 100 * usage.shares.half_life_ms
    usage.shares.use("red", "eve", 1, long_ago)
    usage.shares.use("gone", "eve", 1, long_ago)
    for project in ("red", "gone"):
        usage.shares.use(project, "eve", -1, long_ago + 60_000)
    await start(domain, 1)
    await HandPilot(domain).sync(want=1, wait_ms=1000)
    await usage.look()
    assert [each.user for each in (await domain.project("red")).users] == ["ann"]
    assert usage.projects() == {"red"}
    [document] = [each async for each in store.scan(USAGE_KIND)]
    assert b"eve" not in document.body and b"ann" in document.body
    await server.close()
