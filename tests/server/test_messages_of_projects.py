"""A message is for the members of its project; what is about the installation, for administrators."""

import aiohttp
import pytest

from mendflow.core.model.access_tokens import TokenRequest
from mendflow.core.model.named_limits import LimitCount
from mendflow.server.runner import HttpServer
from tests.server.conftest import Serving
from tests.server.conversation import job_flow
from tests.server.people import As, KnownPeople


@pytest.fixture
async def served(serving: Serving) -> HttpServer:
    return await serving(KnownPeople())


async def messages_for(people: As, who: str) -> set[str]:
    told = await people(who).alerts(severity="info", every=True)
    return {each.sentence for each in told if each.kind == "message"}


async def happens(people: As) -> None:
    """One thing in red, one in the default project, and one that is about the installation."""
    await people("ann").deploy(job_flow("night"))
    await people("root").remove_flow("night")
    await people("clerk").set_limit("licences", LimitCount(3))
    await people("root").create_token(TokenRequest(name="mallory", roles=["user"]))


async def test_messages_are_for_those_whom_they_are_about(people: As) -> None:  # SE-1
    await happens(people)
    known = await messages_for(people, "root")
    red, own = "flow night was removed by root", "limit licences was set to 3 by clerk"
    assert known > {red, own} and [each for each in known if "of mallory was made by root" in each]
    assert await messages_for(people, "vera") == {red}
    assert await messages_for(people, "guest") == await messages_for(people, "clerk") == {own}
    assert await messages_for(people, "boris") == set()


async def test_nor_do_events_tell_others_of_them(people: As, served: HttpServer, http: aiohttp.ClientSession) -> None:
    headers = {"Authorization": "Bearer guest"}  # SE-1
    async with http.get(f"{served.url}/api/v1/events", headers=headers) as response:
        await response.content.readline()
        await happens(people)
        await people("clerk").deploy(job_flow("last"))
        case = (await people("clerk").start("last")).id
        told = ""
        while case not in told:
            told += (await response.content.readline()).decode()
    assert "mallory" not in told and "night" not in told
