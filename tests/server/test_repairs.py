"""Rules, failures, decisions and histories over HTTP, as the small domain and the real one answer."""

import xml.etree.ElementTree as ET

import aiohttp
import msgspec
import pytest

from mendflow.client import Client
from mendflow.core.model.errors import BadFlow, Conflict, InvalidRequest, NotFound
from mendflow.core.model.repair import ExceptionType, Primitive
from mendflow.core.model.repair_views import DecisionQuery, RejectRequest, RepairRequest, RuleSpec
from mendflow.core.model.rules import DEFAULT_RULES, Rule, RuleSet, RuleTree
from mendflow.core.recovery.patterns import FaultPattern, Patterns
from mendflow.formats import xes
from mendflow.server.routes import history as history_routes
from mendflow.server.runner import HttpServer
from mendflow.services.api.domain import Domain
from mendflow.services.base import paging
from tests.server.conversation import do_jobs, job_flow

XES = "{http://www.xes-standard.org/}"


def rules(name: str = "one", condition: str = "fault.exit_code == 3") -> RuleSet:
    tree = RuleTree({1: Rule(id=1, condition=condition)}, 1)
    return RuleSet(name=name, trees={ExceptionType.ABORT: {DEFAULT_RULES: tree}})


async def failed_case(client: Client) -> str:
    await client.deploy(job_flow())
    case = await client.start("one")
    await do_jobs(client, 1, fail=True)
    return (await client.wait(case.id)).id


async def test_rules_are_put_read_and_restored(client: Client) -> None:  # EX-7
    assert [each.name for each in await client.rule_sets()] == [DEFAULT_RULES]
    first = await client.put_rules(rules(), note="the first")
    assert (first.version, first.author, first.note) == (1, "ann", "the first")
    await client.put_rules(rules(condition="true"), expected=1)
    with pytest.raises(Conflict):
        await client.put_rules(rules(), expected=1)
    assert [each.version for each in await client.rule_versions("one")] == [2, 1]
    restored = await client.restore_rules("one", 1)
    newest = await client.rule_set("one")
    assert (restored.version, newest.version) == (3, 3)
    assert newest.rules is not None
    assert newest.rules.trees == rules().trees
    second = await client.rule_set("one", 2)
    assert second.rules is not None
    assert second.rules.trees == rules(condition="true").trees
    assert (await client.rule_set(DEFAULT_RULES)).name == DEFAULT_RULES
    with pytest.raises(NotFound):
        await client.rule_set("none")


@pytest.mark.parametrize("name", ["add", "try", "drafts"])
async def test_a_flow_may_be_named_like_what_is_done_with_rules(client: Client, name: str) -> None:
    await client.put_rules(rules(name))
    assert (await client.rule_set(name)).version == 1


async def test_a_set_is_put_under_its_own_name(served: HttpServer, http: aiohttp.ClientSession) -> None:
    body = {"rules": {"name": "two"}}
    async with http.put(f"{served.url}/api/v1/rules/one", json=body) as response:
        assert response.status == 400
        assert "/rules/two" in (await response.json())["message"]


async def test_a_misspelt_word_in_a_wish_is_refused(served: HttpServer, http: aiohttp.ClientSession) -> None:
    body = {"condition": "true", "exlet": "x", "decison": "y"}
    for address in ("rule-drafts", "rule-drafts/try"):
        async with http.post(f"{served.url}/api/v1/{address}", json=body) as response:
            assert response.status == 400
            assert "decison" in (await response.json())["message"]


async def test_what_is_not_there_is_not_found(client: Client) -> None:
    await client.deploy(job_flow())
    case = await client.start("one")
    for question in (
        client.failure("abc"),
        client.apply_rules("abc"),
        client.decision("no/such:decision"),
        client.reject_choice(RejectRequest(decision="none", exlet="x")),
        client.add_rule(RuleSpec(condition="true", exlet="x", decision="none")),
        client.try_rule(RuleSpec(condition="true", exlet="x", decision="none")),
        client.mend(case.id, RepairRequest(exlet="none")),
        client.drain("77"),
    ):
        with pytest.raises(NotFound):
            await question
    assert await client.decisions(DecisionQuery(case=case.id)) == []


async def test_levels_and_patterns_are_listed(client: Client) -> None:  # FM-11
    assert (await client.levels())[0].level == 1
    assert (await client.drain("all")).let_go == 0
    pattern = FaultPattern(name="once-more", does="Submit it again.", do=Primitive.RESUBMIT)
    assert (await client.add_patterns(Patterns((), (pattern,)))).repair("once-more") == pattern
    assert (await client.patterns()).repair("once-more") == pattern


@pytest.mark.parametrize("domain", ["real"], indirect=True)
async def test_a_failure_is_grouped_tried_and_given_a_rule(domain: Domain, client: Client) -> None:  # EX-7
    case = await failed_case(client)
    [group] = await client.failures(flow="one")
    assert (group.count, group.unhandled, group.category) == (1, 1, "job")
    assert await client.failures(since=group.last_at + 1) == []
    view = await client.failure(group.id[:5])
    wish = RuleSpec(condition="fault.exit_code == 3", exlet="again", group=group.id)
    pattern = FaultPattern(name="again", does="Submit it again.", do=Primitive.RESUBMIT)
    await client.add_patterns(Patterns((), (pattern,)))
    trial = await client.try_rule(wish)
    assert (trial.caught, trial.of, [each.decision for each in trial.caught_ids]) == (1, 1, [view.samples[0].id])
    assert (trial.rules, trial.version, trial.task, trial.under, trial.side) == ("one", 0, "work", None, "")
    with pytest.raises(Conflict, match="is at version 0, not 2"):
        await client.add_rule(msgspec.structs.replace(wish, expected=2))
    added = await client.add_rule(msgspec.structs.replace(wish, expected=trial.version))
    assert (added.rules, added.version, added.task, added.rule) == ("one", 1, "work", 1)
    finer = RuleSpec(condition="fault.exit_code == 3 && job.failures > 0", exlet="give-up", group=group.id, expected=1)
    trial = await client.try_rule(finer)
    assert (trial.version, trial.under, trial.side) == (1, 1, "true")
    assert trial.others == []
    with pytest.raises(InvalidRequest, match="hold"):
        await client.add_rule(RuleSpec(condition="fault.exit_code == 4", exlet="again", group=group.id))
    whole = await client.decision(view.samples[0].id)
    assert (whole.case, whole.context["fault"]["exit_code"]) == (case, 3)
    why = await client.why(f"{case}:work")
    assert [each.id for each in why.repairs] == [whole.id]
    with pytest.raises(BadFlow):
        await client.put_rules(rules(condition="1 +"))


@pytest.mark.parametrize("domain", ["real"], indirect=True)
async def test_one_history_is_told_and_exported_for_process_mining(
    domain: Domain, client: Client, served: HttpServer, http: aiohttp.ClientSession
) -> None:  # EX-11
    case = await failed_case(client)
    entries = await client.history("last")
    assert [entry.what for entry in entries if entry.source == "engine"] == ["started", "submitted", "failed", "failed"]
    async with http.get(f"{served.url}/api/v1/cases/{case}/history?format=xes") as response:
        assert response.headers["Content-Type"].startswith("application/xml")
        log = ET.fromstring(await response.text())
    [trace] = log.findall(f"{XES}trace")
    assert len(trace.findall(f"{XES}event")) == len(entries)
    assert await client.xes(case) == (await client.xes("last"))
    await client.start("one")
    whole = ET.fromstring(await client.xes(flow="one"))
    assert len(whole.findall(f"{XES}trace")) == 2
    assert len(ET.fromstring(await client.xes(flow="one", limit=1)).findall(f"{XES}trace")) == 1
    async with http.get(f"{served.url}/api/v1/cases/{case}/history?format=csv") as response:
        assert response.status == 400


async def test_the_log_of_a_flow_has_all_cases_however_many_answers_that_takes(  # EX-11
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    await client.deploy(job_flow())
    cases = [(await client.start("one")).id for _ in range(5)]
    newest_first = [each.id for each in await client.cases(flow="one")]
    assert sorted(newest_first) == sorted(cases)
    monkeypatch.setattr(history_routes, "PAGE_CASES", 2)
    monkeypatch.setattr(paging, "EXAMINED_MAX", 1)
    assert [each.id for each in await client.cases(flow="one")] == newest_first
    assert [each.id for each in await client.cases(flow="one", limit=2, offset=2)] == newest_first[2:4]
    for limit in range(1, 8):
        text = await client.xes(flow="one", limit=limit)
        named = [trace.find(f"{XES}string[@key='concept:name']") for trace in ET.fromstring(text).iter(f"{XES}trace")]
        assert [each.attrib["value"] for each in named if each is not None] == newest_first[:limit]
        assert xes.is_cut(text) == (limit < 5)
