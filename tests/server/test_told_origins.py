"""Who tells where a case came from is an account or a token, and a token has nothing of the account of its name."""

# SE-4

import os

import pytest

from mendflow.client import Client
from mendflow.core.model.access_tokens import TokenRequest
from mendflow.core.model.views import CaseOrigin
from mendflow.local_accounts import account_name
from mendflow.server.access import AccessControl
from mendflow.server.runner import HttpServer
from tests.server.conftest import DomainUnderTest, Serving
from tests.server.conversation import job_flow
from tests.server.people import As, KnownPeople

ORIGIN = CaseOrigin(flow="/home/ann/f.yaml", inputs={"doc": "/home/ann/id"}, output_dir="/home/ann/x", told_by="ann")


@pytest.fixture
async def served(serving: Serving) -> HttpServer:
    return await serving(KnownPeople())


async def ended(client: Client) -> str:
    case = (await client.start_with_flow(job_flow("of-ann"), origin=ORIGIN)).id
    await client.cancel(case)
    return case


async def teller(client: Client, case: str) -> str:
    origin = (await client.case(case)).origin
    return origin.told_by if origin is not None else "nobody"


async def test_an_account_is_one_whatever_name_it_gives_and_no_token_is_it(
    serving: Serving, domain: DomainUnderTest
) -> None:
    served = await serving(AccessControl(stored=domain._server.access_tokens))
    account = account_name(os.geteuid())
    made = await domain.create_token(TokenRequest(name=account, roles=["user"]), who="root")
    async with (
        Client(served.url, user=account) as own,
        Client(served.url, user="another-name") as renamed,
        Client(served.url, token=made.token) as token,
    ):
        assert (await token.me()).name == (await own.me()).name == account
        assert [(await each.me()).teller for each in (own, renamed, token)] == [f"account {account}"] * 2 + [account]
        case = await ended(token)
        assert await teller(own, case) == account
        assert await teller(own, (await own.rerun(case)).id) == "nobody"
        assert await teller(own, (await token.rerun(case)).id) == account
        case = await ended(own)
        assert await teller(own, (await renamed.rerun(case)).id) == f"account {account}"
        assert await teller(own, (await token.rerun(case)).id) == "nobody"


async def test_a_case_is_run_again_by_somebody_else_without_its_paths(people: As) -> None:
    case = await ended(people("ann"))
    assert await teller(people("olga"), case) == "ann"
    for name in ("olga", "root"):
        again = await people(name).rerun(case)
        assert (again.owner, again.origin) == (name, None)
    again = await people("ann").rerun(case)
    assert again.origin == ORIGIN
