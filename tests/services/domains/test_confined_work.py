"""What another domain has sent stays within its rights, whatever a modified origin says."""

from pathlib import Path
from typing import Any

import pytest

from mendflow.core.model.data import Publication
from mendflow.core.model.data_sets import DataSetSpec, Gathering
from mendflow.core.model.domains import DomainRights, SentWork
from mendflow.core.model.flow import Call, Flow, Input, Invoke, JobActivity, Sequence
from mendflow.core.model.ids import ItemId
from mendflow.core.model.jobs import JobSpec, Resources
from mendflow.core.model.templates import ResourceTemplates
from tests.services.domains.by_hand import HandOrigin, sent_flow, sent_job
from tests.services.domains.kit import Domains
from tests.services.recovery.kit import World, flow

SECRET = flow(JobActivity(name="steal", command="true"), "secret")
OWN = DomainRights(sites=("hall",))


def calling(name: str, **more: Any) -> Flow:
    return flow(Call(name="c", flow=name), "sent", **more)


def sites_of(world: World) -> dict[str, str]:
    """By item: the site that each job of the host is for."""
    return {str(job.spec.item): job.spec.resources.site for job in world.runtime.meta.jobs.values()}


async def refused(world: World, rights: DomainRights, work: SentWork) -> str:
    said = await HandOrigin(rights).say(world.runtime.domains.hosted, work)
    assert said[work.key].state == "refused", said
    assert not world.runtime.manager.live
    return said[work.key].reason


@pytest.mark.parametrize(
    "sent",
    [
        calling("secret"),
        calling("inner", calls=(flow(Call(name="d", flow="secret"), "inner"),)),
        flow(Sequence(name="s", body=(Call(name="c", flow="secret", domain="third"),)), "sent"),
    ],
)
async def test_a_sent_flow_calls_no_flow_that_its_origin_may_not_start(tmp_path: Path, sent: Flow) -> None:
    async with Domains(tmp_path) as domains:
        await domains.away.domain.deploy(SECRET)
        reason = await refused(domains.away, DomainRights(flows=("open",)), sent_flow(sent))
        assert "'secret', which was not sent along" in reason


async def test_flows_that_were_sent_along_are_called_from_one_another(tmp_path: Path) -> None:
    async with Domains(tmp_path) as domains:
        inner, leaf = flow(Call(name="d", flow="leaf"), "inner"), flow(JobActivity(name="j", command="true"), "leaf")
        await HandOrigin().say(domains.away.runtime.domains.hosted, sent_flow(calling("inner", calls=(inner, leaf))))
        assert await domains.away.take() == ["j"]


async def test_neither_our_rules_nor_a_partner_choose_a_flow_for_a_sent_one(tmp_path: Path) -> None:
    async with Domains(tmp_path) as domains:
        assert "leaves it to the rules" in await refused(domains.away, DomainRights(), sent_flow(calling("")))
        invoking = flow(Invoke(name="i", partner="p", operation="o"), "sent")
        assert "calls a partner" in await refused(domains.away, DomainRights(), sent_flow(invoking))


async def test_a_job_that_is_given_whole_gets_no_site_that_is_not_allowed(tmp_path: Path) -> None:
    async with Domains(tmp_path) as domains:
        given = JobSpec(item=ItemId("j"), command="true", resources=Resources(site="vault"))
        reason = await refused(domains.away, OWN, sent_flow(flow(JobActivity(name="j", given=given), "sent")))
        assert "no pilots of the site 'vault'" in reason


async def test_a_flow_that_is_started_by_name_and_those_it_calls_are_confined_to_the_sites(tmp_path: Path) -> None:
    async with Domains(tmp_path) as domains:
        away = domains.away
        await away.domain.deploy(SECRET)
        both = Sequence(name="s", body=(JobActivity(name="first", command="true"), Call(name="c", flow="secret")))
        await away.domain.deploy(flow(both, "open"))
        origin = HandOrigin(DomainRights(flows=("open",), sites=("hall",)))
        await origin.say(away.runtime.domains.hosted, SentWork(key="k", fence=1, name="open", owner="ann"))
        await away.quiet()
        assert sites_of(away) == {"first": "hall"}


async def test_a_called_flow_is_confined_to_the_sites_of_the_case_that_was_sent(tmp_path: Path) -> None:
    async with Domains(tmp_path) as domains:
        away = domains.away
        await away.domain.deploy(SECRET)
        origin = HandOrigin(DomainRights(flows=("secret",), sites=("hall",)))
        await origin.say(away.runtime.domains.hosted, sent_flow(calling("secret")))
        await away.quiet()
        assert sites_of(away) == {"steal": "hall"}
        await away.restart()
        await away.quiet()
        assert sites_of(away) == {"steal": "hall"}


async def test_a_site_that_an_expression_gives_is_refused_when_the_job_is_submitted(tmp_path: Path) -> None:
    async with Domains(tmp_path, recovery=False) as domains:
        resources = ResourceTemplates(site="${{ inputs.where }}")
        sent = flow(
            JobActivity(name="j", command="true", resources=resources),
            "sent",
            inputs={"where": Input(type="string", default="vault")},
        )
        origin = HandOrigin(OWN)
        await origin.say(domains.away.runtime.domains.hosted, sent_flow(sent))
        await domains.away.quiet()
        assert sites_of(domains.away) == {}
        said = await origin.say(domains.away.runtime.domains.hosted)
        outcome = said["k-1"].outcome
        assert outcome is not None and outcome.fault is not None
        assert "no pilots of the site 'vault'" in outcome.fault.message


async def test_what_has_sites_here_is_not_sent_on_to_another_domain(tmp_path: Path) -> None:
    async with Domains(tmp_path) as domains:
        sent = flow(JobActivity(name="j", command="true", domain="home"), "sent")
        assert "stays here" in await refused(domains.away, OWN, sent_flow(sent))


async def test_files_of_a_sent_job_start_no_flow_that_its_origin_may_not_start(tmp_path: Path) -> None:
    async with Domains(tmp_path, recovery=False) as domains:
        away = domains.away
        await away.domain.deploy(
            flow(JobActivity(name="steal", command="true"), "secret", inputs={"f": Input(type="file")})
        )
        gathering = Gathering(name="g", flow="secret", count=1, inputs={"f": "${{ file }}"})
        await away.runtime.data_sets.define(DataSetSpec(name="raw", gatherings=(gathering,)), who="me")
        published = {"out": Publication(logical="lfn:/x/y", data_set="raw")}
        origin = HandOrigin()
        await origin.say(away.runtime.domains.hosted, sent_job(publish=published))
        await away.quiet()
        assert sites_of(away) == {}
        said = await origin.say(away.runtime.domains.hosted)
        outcome = said["k-1"].outcome
        assert outcome is not None and outcome.fault is not None
        assert "files start the flow 'secret'" in outcome.fault.message
