"""What a living server tells Prometheus, and that the dashboard and the alert rules ask for nothing else."""

import json
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import aiohttp
import pytest
import yaml
from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
from prometheus_client.parser import text_string_to_metric_families

from mendflow.client import Client
from mendflow.core.model import flow as model
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import Flow
from mendflow.core.model.ids import CaseId, FlowName, ItemId, JobId
from mendflow.core.model.jobs import Measurements
from mendflow.core.model.sync import AttemptReport, AttemptStatus
from mendflow.server.access import AccessToken, token_hash
from mendflow.wiring import RunningServer, ServerOptions, running_server
from tests.server.by_hand import ByHand

ROOT = Path(__file__).parents[2]
DASHBOARD = ROOT / "deploy" / "grafana" / "mendflow.json"
RULES = ROOT / "deploy" / "prometheus" / "mendflow-alerts.yml"
OWN_LABELS = {"instance", "job", "le"}
"""Which Prometheus adds, or histograms have."""
FAULT = Fault(name="exit", category=Category.JOB, message="it ended with 3", exit_code=3)


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[RunningServer]:
    async with running_server(ServerOptions(data=tmp_path, levels_ms=(3_600_000,))) as running:
        yield running


async def one_ended_one_failed_one_running(server: RunningServer) -> None:
    """Two jobs of one case end, one well; a job of another case runs on."""
    async with Client(server.url) as client:
        two = model.Parallel(
            name="both",
            branches=(model.JobActivity(name="good", command="true"), model.JobActivity(name="bad", command="false")),
        )
        await client.deploy(Flow(name=FlowName("two"), body=two))
        await client.deploy(Flow(name=FlowName("long"), body=model.JobActivity(name="long", command="sleep 9")))
        pilot = ByHand(client, server.server.clock.now())
        await client.start("two")
        given = await pilot.jobs(2)
        assert {each.spec.item for each in given} == {"good", "bad"}
        faults = {"good": None, "bad": FAULT}
        await pilot.sync(
            reports=tuple(AttemptReport(each.job, each.fence, pilot.outcome(faults[each.spec.item])) for each in given)
        )
        await client.start("long")
        [long] = await pilot.jobs(1)
        await pilot.sync(running=(AttemptStatus(long.job, long.fence, "running", Measurements(ran_ms=7_000)),))


async def scraped(url: str) -> dict[str, Metric]:
    async with aiohttp.ClientSession() as http, http.get(f"{url}/metrics") as response:
        assert response.status == 200
        assert response.headers["content-type"].startswith("text/plain")
        return {family.name: family for family in text_string_to_metric_families(await response.text())}


def value(families: dict[str, Metric], family: str, suffix: str = "", **labels: str) -> float:
    found = [
        sample.value
        for sample in families[family].samples
        if sample.name == family + suffix and labels.items() <= sample.labels.items()
    ]
    return sum(found)


async def test_a_server_tells_what_became_of_its_jobs(server: RunningServer) -> None:  # JS-8
    await one_ended_one_failed_one_running(server)
    levels = server.server.runtime.levels
    await levels.enter("x/1", level=1, job=JobId("x/1"), case=CaseId("x"), item=ItemId("i"), mode="express")
    told = await scraped(server.url)
    assert value(told, "mendflow_attempts_ended", "_total", end="completed", site="north") == 1
    assert value(told, "mendflow_attempts_ended", "_total", end="failed", site="north") == 1
    assert value(told, "mendflow_attempts_granted", "_total") == 3
    assert value(told, "mendflow_jobs_submitted", "_total") == 3
    assert value(told, "mendflow_jobs", state="running", site="north") == 1
    assert value(told, "mendflow_slots", site="north") == 4
    assert value(told, "mendflow_slots_free", site="north") == 3
    assert value(told, "mendflow_cases_started", "_total", flow="two") == 1
    assert value(told, "mendflow_level_jobs", level="1") == 1
    assert value(told, "mendflow_store_up") == value(told, "mendflow_servers") == 1
    assert value(told, "mendflow_store_seconds", "_count", operation="write") > 0
    assert value(told, "mendflow_ledger_flush_seconds", "_count") > 0
    assert value(told, "mendflow_build_info", store="sqlite") == 1


async def test_latencies_do_not_see_that_a_pilots_clock_is_wrong(server: RunningServer) -> None:
    await one_ended_one_failed_one_running(server)
    told = await scraped(server.url)
    for name, most in (("start", 60.0), ("end_known", 60.0), ("run", 60.0)):
        assert value(told, f"mendflow_job_{name}_seconds", "_count") == 2
        assert value(told, f"mendflow_job_{name}_seconds", "_sum") < most
    assert value(told, "mendflow_job_end_known_seconds", "_sum") == pytest.approx(1.0)
    assert value(told, "mendflow_job_run_seconds", "_sum") == pytest.approx(4.0)


async def test_no_label_names_a_case_or_a_job(server: RunningServer) -> None:
    await one_ended_one_failed_one_running(server)
    async with Client(server.url) as client:
        cases = [case.id for case in await client.cases()]
    for family in (await scraped(server.url)).values():
        for sample in family.samples:
            assert not any(case in text for case in cases for text in sample.labels.values()), sample


async def test_whoever_likes_open_metrics_gets_it(server: RunningServer) -> None:
    headers = {"Accept": "application/openmetrics-text; version=1.0.0"}
    async with aiohttp.ClientSession() as http, http.get(f"{server.url}/metrics", headers=headers) as response:
        text = await response.text()
        assert response.headers["content-type"].startswith("application/openmetrics-text")
    assert text.endswith("# EOF\n")
    families = open_metrics(text)  # type: ignore[no-untyped-call]  # the library has no type for it
    assert {"mendflow_jobs", "mendflow_repairs"} <= {family.name for family in families}


async def test_numbers_are_told_while_the_store_is_away(server: RunningServer) -> None:
    server.server.on_broken(server.server.runtime, "the test says so")
    told = await scraped(server.url)
    assert value(told, "mendflow_store_up") == 0
    while server.server.present is None:
        await server.server.clock.sleep(20)
    back = await scraped(server.url)
    assert value(back, "mendflow_store_up") == 1
    assert value(back, "mendflow_store_away_seconds", "_total") > 0


async def test_a_collector_with_the_role_metrics_reads_numbers_and_nothing_else(tmp_path: Path) -> None:
    token = AccessToken("prometheus", frozenset({"metrics"}), token_hash("secret"))
    async with running_server(ServerOptions(data=tmp_path, tokens=(token,))) as server, aiohttp.ClientSession() as http:
        wanted = {"/metrics": 200, "/api/v1/stats": 200, "/api/v1/cases": 403, "/api/v1/servers": 403}
        for path, status in wanted.items():
            async with http.get(server.url + path, headers={"Authorization": "Bearer secret"}) as response:
                assert response.status == status, path
        async with http.get(f"{server.url}/metrics") as response:
            assert response.status == 401


# The dashboard and the rules


def expressions() -> Iterator[tuple[str, str]]:
    """Every expression, with what it is for."""
    dashboard = json.loads(DASHBOARD.read_text())
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            yield f"panel {panel['title']}", target["expr"]
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            yield f"variable {variable['name']}", variable["query"]["query"]
    for group in yaml.safe_load(RULES.read_text())["groups"]:
        for rule in group["rules"]:
            yield f"rule {rule['alert']}", rule["expr"]


NAME = re.compile(r"\b((?:mendflow|process)_[a-z0-9_]+)(?:\{([^}]*)\})?")
GROUPING = re.compile(r"\bby \(([^)]*)\)")


def labels_of(families: dict[str, Metric]) -> dict[str, set[str]]:
    """By the names of samples: which labels they have."""
    found: dict[str, set[str]] = {}
    for family in families.values():
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


async def test_dashboard_and_rules_ask_only_for_what_there_is(server: RunningServer) -> None:  # JS-8
    await one_ended_one_failed_one_running(server)
    server.server.counts.repairs.add("two", "1", "again", "recovered")
    server.server.counts.store.conflicts.add("job")
    server.server.counts.jobs.placed.add("data")
    server.server.counts.cases_ended.add("two", "failed")
    known = labels_of(await scraped(server.url))
    asked: set[str] = set()
    for where, expression in expressions():
        metrics = NAME.findall(expression)
        assert metrics, where
        labels = set(re.findall(r"(\w+)\s*[=!]~?\s*\"", expression))
        labels |= {label.strip() for group in GROUPING.findall(expression) for label in group.split(",")}
        for name, _ in metrics:
            assert name in known, f"{where}: there is no {name}"
            asked.add(name)
        offered = set().union(*(known[name] for name, _ in metrics)) | OWN_LABELS
        assert labels <= offered, f"{where}: {sorted(labels - offered)}"
    own = {re.sub(r"_(bucket|count|sum|created)$", "", name) for name in known if name.startswith("mendflow_")}
    unasked = own - {re.sub(r"_(bucket|count|sum)$", "", name) for name in asked}
    assert not unasked, f"the dashboard has no panel for {sorted(unasked)}"


def test_the_dashboard_can_be_imported() -> None:
    dashboard = json.loads(DASHBOARD.read_text())
    assert dashboard["id"] is None
    assert {each["name"] for each in dashboard["templating"]["list"]} == {"datasource", "server"}
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(ids) == len(set(ids))
    places = [tuple(panel["gridPos"].values()) for panel in dashboard["panels"]]
    assert len(places) == len(set(places))
    for panel in dashboard["panels"]:
        if panel["type"] != "row":
            assert panel["targets"] and panel["datasource"]["uid"] == "${datasource}"
            assert all('instance=~"$server"' in target["expr"] for target in panel["targets"]), panel["title"]


def test_every_rule_says_what_to_do_and_where_it_is_written() -> None:
    page = (ROOT / "docs" / "do" / "metrics.md").read_text()
    headings = {line.lstrip("# ").strip().lower() for line in page.splitlines() if line.startswith("#")}
    [group] = yaml.safe_load(RULES.read_text())["groups"]
    names = [rule["alert"] for rule in group["rules"]]
    assert len(names) == len(set(names))
    for rule in group["rules"]:
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
        assert {"summary", "description", "runbook_url"} <= rule["annotations"].keys()
        file, _, anchor = rule["annotations"]["runbook_url"].partition("#")
        assert (ROOT / file).is_file() and anchor == rule["alert"].lower() and anchor in headings
