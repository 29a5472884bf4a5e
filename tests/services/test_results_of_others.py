"""Whose results are used for the functions of a user's flow."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mendflow.core.model.flow import Flow, JobActivity
from mendflow.core.model.ids import FlowName
from mendflow.core.model.jobs import FunctionRef
from mendflow.core.model.values import FileRef
from mendflow.stores.memory import MemoryStore
from tests.services.conftest import server_on
from tests.services.lab import Lab


@pytest.fixture
async def lab(tmp_path: Path) -> AsyncIterator[Lab]:
    server = server_on(MemoryStore(), tmp_path)
    await server.open()
    yield Lab(server)
    await server.close()


def calling(code: FileRef, name: str) -> Flow:
    """A flow that says of its function, whatever the code is, that it uses the same."""
    function = FunctionRef(module="m", name="f", code=code, uses="5" * 40)
    return Flow(name=FlowName(name), body=JobActivity(name="a", function=function, owner="bob"))


async def test_what_a_user_says_of_a_functions_code_gives_no_result_to_another_user(lab: Lab) -> None:  # DU-2
    """The digest of what a function uses comes with the flow: somebody else's flow may have it with other code."""
    bobs, forged = await lab.keep("def f(): return 1"), await lab.keep("def f(): return 666")
    await lab.run(calling(forged, "anns"), cache="all", who="ann")
    second = await lab.run(calling(bobs, "bobs"), cache="all", who="bob")
    assert lab.ran == ["a"]
    assert "of another user made the result" in (await lab.reasons(second))["a"]
    edited = await lab.keep("def f(): return 1\n\ndef g(): return 2")
    await lab.run(calling(edited, "bobs"), cache="all", who="bob")
    assert lab.ran == []  # his own flow, edited elsewhere
    await lab.run(calling(bobs, "carols"), cache="all", who="carol")
    assert lab.ran == []  # the very same code
