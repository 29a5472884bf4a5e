"""Whose account a job has where pilots run jobs under the accounts of their owners."""

from mendflow.core.model.flow import JobActivity
from mendflow.core.model.ids import ItemId
from mendflow.services.api.domain import Domain
from mendflow.services.runtime.server import Server
from tests.services.recovery.kit import flow


async def test_an_owner_that_a_flow_names_does_not_choose_the_account(server: Server, domain: Domain) -> None:  # SE-2
    await domain.deploy(flow(JobActivity(name="a", command="true", owner="news")), who="games")
    await domain.start("f", {}, who="games")
    await domain.deploy(flow(JobActivity(name="b", command="true")), who="games")
    await domain.start("f", {}, who="games")
    specs = {job.spec.item: job.spec for job in server.runtime.meta.jobs.values()}
    named, plain = specs[ItemId("a")], specs[ItemId("b")]
    assert (named.owner, named.account) == ("news", "games")
    assert (plain.owner, plain.account) == ("games", "")
