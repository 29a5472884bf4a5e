"""A process begins with a message, and so nobody starts it by hand."""

from pathlib import Path

import pytest

from mendflow.core.model.errors import Conflict
from mendflow.services.api.domain import Domain
from tests.formats.bpel.documents import flow, sequence


async def test_a_process_is_not_started_by_hand_but_by_a_message(domain: Domain, tmp_path: Path) -> None:
    read = flow(tmp_path, sequence())
    await domain.deploy(read)
    with pytest.raises(Conflict, match="begins with a message: send one to /soap/flows/buying"):
        await domain.start(read.name, {}, who="me")
    assert not await domain.cases(flow=read.name)
