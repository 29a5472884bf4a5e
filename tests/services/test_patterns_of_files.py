"""Patterns of files that a case is given: what may not be read is not looked for either."""

from pathlib import Path

import pytest

from mendflow.core.model.errors import Forbidden, InvalidRequest
from mendflow.core.model.flow import Flow, Input, JobActivity
from mendflow.core.model.ids import FlowName
from mendflow.services.api.domain import Domain
from mendflow.services.base.clock import SystemClock
from mendflow.services.runtime.server import Server, ServerSettings
from mendflow.stores.files import FolderFileStore
from mendflow.stores.memory import MemoryStore


async def test_a_pattern_outside_the_roots_tells_nothing_of_what_is_there(tmp_path: Path) -> None:  # SE-1
    for name in ("open", "shut"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text("a")
    store = FolderFileStore(tmp_path / "files")
    store.open()
    settings = ServerSettings(files_roots=(tmp_path / "open",))
    server = Server(store=MemoryStore(), file_store=store, clock=SystemClock(), settings=settings, version="test")
    await server.open()
    try:
        domain = Domain(server)
        inputs = {"all": Input(type="files", required=True)}
        await domain.deploy(
            Flow(name=FlowName("f"), body=JobActivity(name="a", command="true"), inputs=inputs, folder=str(tmp_path)),
            who="ann",
        )
        for outside in ("shut/*.txt", "shut/*.none", f"{tmp_path}/shut/*", "open/*/../../shut/*", "**", "/etc/*"):
            with pytest.raises(Forbidden, match="may not be read by this server") as refused:
                await domain.start("f", {"all": outside}, who="ann")
            assert "a.txt" not in refused.value.message
        with pytest.raises(InvalidRequest, match="no file matches"):
            await domain.start("f", {"all": "open/*.none"}, who="ann")
        assert await domain.start("f", {"all": "open/*.txt"}, who="ann")
    finally:
        await server.close()
