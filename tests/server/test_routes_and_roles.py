"""Who may do what, route by route: a route that is added has to be put into the table, or this fails."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import aiohttp
import pytest

from mendflow.core.model.principals import Principal
from mendflow.operations.roles import ANYBODY
from mendflow.operations.table import OPERATIONS
from mendflow.server import access
from mendflow.server.access import AccessControl, is_allowed, read_tokens, token_hash
from mendflow.server.app import create_app
from mendflow.server.runner import HttpServer, serve
from tests.patience import PATIENCE_S
from tests.server.conftest import DomainUnderTest

ROLES = ("admin", "user", "reader", "editor", "pilot", "engine", "metrics")
"""`editor` stands for any role that only tasks know."""

ALL = set(ROLES)
READ = {"admin", "user", "reader", "editor"}
CHANGE = {"admin", "user"}
ADMINISTER = {"admin"}
PULL = {"admin", "pilot"}
DO_TASKS = CHANGE | {"editor"}
FETCH = READ | {"pilot"}
SERVED = {"admin", "engine"}
WHO: dict[str, set[str]] = {
    **dict.fromkeys(("health", "openapi", "docs"), ALL),
    **dict.fromkeys(("sign_in_options", "sign_in", "sign_out"), ALL),
    **dict.fromkeys(("me", "create_sign_in_code"), ALL),
    **dict.fromkeys(
        ("cases", "case", "flow_of", "flow_file", "items", "item", "why", "case_events", "all_events"), READ
    ),
    **dict.fromkeys(("flows", "flow", "flow_file_of", "jobs", "job", "log", "pilots", "worklist", "user_task"), READ),
    **dict.fromkeys(("administration_tasks", "administration_task"), READ),
    **dict.fromkeys(("count_jobs", "count_cases"), READ),
    **dict.fromkeys(("overview", "case_graph", "case_timeline", "compare_cases", "flow_graph"), READ),
    "check_flow": CHANGE,
    "forecast_results": CHANGE,  # it gives what earlier jobs made
    **dict.fromkeys(("drain_pilot", "resume_pilot"), ADMINISTER),
    "export": CHANGE,  # an archive has all that jobs were given
    "import_archive": ADMINISTER,
    **dict.fromkeys(("find_audit", "verify_audit", "export_audit"), ADMINISTER),
    **dict.fromkeys(("proposals", "proposal", "learning_report", "learning_settings"), READ),
    **dict.fromkeys(("adopt_proposal", "dismiss_proposal"), CHANGE),
    **dict.fromkeys(("put_learning_settings", "recount_learning"), ADMINISTER),
    **dict.fromkeys(("history", "flow_history", "triggers", "failures", "failure", "decisions", "decision"), READ),
    **dict.fromkeys(("rule_sets", "rule_set", "rule_versions", "compensations", "levels", "patterns"), READ),
    **dict.fromkeys(("deploy", "start", "start_with_flow", "suspend", "resume", "cancel", "rerun", "send"), CHANGE),
    **dict.fromkeys(("put_rules", "restore_rules", "add_rule", "try_rule", "apply_rules"), CHANGE),
    **dict.fromkeys(("promote_rule", "retire_rule", "change_rule", "stop_apply", "map_tasks"), CHANGE),
    **dict.fromkeys(("evaluate_rules", "replay_rules", "check_rules", "read_xrs", "rules_as_xrs"), CHANGE),
    **dict.fromkeys(("context_paths", "trial_agreement", "primitives", "differences"), READ),
    **dict.fromkeys(("rule_tasks", "exlet_results", "failure_counts", "failure_values", "apply_progress"), READ),
    **dict.fromkeys(("reject_choice", "raise_trigger", "mend", "drain"), CHANGE),
    **dict.fromkeys(("register_compensation", "add_patterns"), ADMINISTER),
    **dict.fromkeys(("claim", "release", "complete", "reject"), DO_TASKS),
    **dict.fromkeys(("read_file", "file_size"), FETCH),
    "store_file": CHANGE | {"pilot"},
    **dict.fromkeys(("alerts", "notifications"), READ),
    **dict.fromkeys(("acknowledge", "requeue"), ADMINISTER),
    **dict.fromkeys(("webhooks", "add_webhook", "remove_webhook", "try_webhook"), ADMINISTER),
    **dict.fromkeys(("rule_sources", "put_rule_source", "remove_rule_source", "try_rule_source"), ADMINISTER),
    **dict.fromkeys(("sites", "site"), READ),
    **dict.fromkeys(("put_site", "pause_site", "resume_site", "remove_site"), ADMINISTER),
    **dict.fromkeys(("domains", "connected_domain"), READ),
    **dict.fromkeys(("charge_domain", "invite_domain", "connect_domain"), ADMINISTER),
    **dict.fromkeys(("change_domain_rights", "change_domain_address", "disconnect_domain"), ADMINISTER),
    **dict.fromkeys(("sync", "locate", "place", "keep_many"), PULL),
    **dict.fromkeys(("data", "datum", "places", "elements", "element"), READ),
    **dict.fromkeys(("add_data", "add_replica"), CHANGE),
    **dict.fromkeys(("remove_data", "remove_replica", "put_element", "remove_element"), ADMINISTER),
    **dict.fromkeys(("data_sets", "data_set", "set_files", "set_batches", "watches"), READ),
    **dict.fromkeys(("put_data_set", "add_to_set", "close_set", "retry_batch"), CHANGE),
    **dict.fromkeys(("put_watch", "remove_watch", "deploy_with_triggers", "remove_flow"), ADMINISTER),
    **dict.fromkeys(("stats", "metrics"), READ | {"metrics"}),
    **dict.fromkeys(("results", "result"), READ),
    "sizes": READ,
    **dict.fromkeys(("schedules", "schedule", "due_times"), READ),
    **dict.fromkeys(("limits", "limit", "secrets"), READ),
    **dict.fromkeys(("set_limit", "remove_limit", "set_secret", "remove_secret"), CHANGE),
    **dict.fromkeys(("projects", "project", "fair_share", "members"), READ),
    **dict.fromkeys(("set_project", "remove_project_settings", "set_fair_share"), ADMINISTER),
    **dict.fromkeys(("put_member", "remove_member"), ADMINISTER),
    **dict.fromkeys(("tokens", "create_token", "revoke_token"), ADMINISTER),
    **dict.fromkeys(("put_schedule", "remove_schedule", "pause_schedule"), CHANGE),
    **dict.fromkeys(("resume_schedule", "backfill_schedule"), CHANGE),
    "trigger_schedule": CHANGE,
    **dict.fromkeys(("prune_run", "retention_rules"), ADMINISTER),
    **dict.fromkeys(("prune", "put_retention_rule", "remove_retention_rule"), ADMINISTER),
    "drop_results": ADMINISTER,
    "servers": READ,
    "engines": READ | {"engine"},
    "engine_cases": READ | {"engine"},
    **dict.fromkeys(("register_engine", "engine_event", "engine_case", "engine_orders", "engine_done"), SERVED),
}
FOR_ALL_WITH_A_TOKEN = {"me", "create_sign_in_code"}
BEFORE_THE_ROUTES = {"sync", "locate", "place", "keep_many"}
"""What pilots ask is answered without the framework."""
FILLED = {"sha256": "0" * 64, "serial": "1", "number": "1"}


@pytest.fixture
async def guarded(domain: DomainUnderTest) -> AsyncIterator[HttpServer]:
    tokens = read_tokens("\n".join(f"{role} {role} {token_hash(f't-{role}')}" for role in ROLES))
    served = await serve(create_app(domain, access=AccessControl(tokens)))
    yield served
    await served.stop()


def routes(document: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            filled = path
            for each in operation.get("parameters", []):
                if each["in"] == "path":
                    filled = filled.replace(f"{{{each['name']}}}", FILLED.get(each["name"], "x"))
            assert "{" not in filled, path
            yield operation["operationId"], method.upper(), filled


async def all_routes(served: HttpServer, http: aiohttp.ClientSession) -> list[tuple[str, str, str]]:
    async with http.get(f"{served.url}/api/v1/openapi.json") as response:
        return list(routes(await response.json()))


async def test_the_table_has_every_route_and_no_other(guarded: HttpServer, http: aiohttp.ClientSession) -> None:
    assert {operation for operation, _, _ in await all_routes(guarded, http)} == set(WHO)
    assert {operation.id for operation in OPERATIONS.values()} == set(WHO)


async def test_every_route_wants_a_token_but_those_that_tell_nothing(
    guarded: HttpServer, http: aiohttp.ClientSession
) -> None:
    for operation, method, path in await all_routes(guarded, http):
        async with http.request(method, f"{guarded.url}{path}") as response:
            wants_token = WHO[operation] != ALL or operation in FOR_ALL_WITH_A_TOKEN
            assert (response.status == 401) is wants_token, operation


@pytest.mark.parametrize("role", ROLES)
async def test_who_may_not_cannot(guarded: HttpServer, http: aiohttp.ClientSession, role: str) -> None:
    headers = {"Authorization": f"Bearer t-{role}"}
    for operation, method, path in await all_routes(guarded, http):
        allowed = role in WHO[operation]
        assert is_allowed(Principal(role, frozenset({role})), method, path) is allowed, f"{role} {operation}"
        if not allowed:
            for way in (path, f"{path}/", path.replace("/api/v1/", "/api//v1///"), path.upper(), f"{path}?role=admin"):
                async with http.request(method, f"{guarded.url}{way}", headers=headers, json={}) as response:
                    assert response.status in ((403,) if way == path else (403, 404, 405)), f"{role} {method} {way}"


async def test_the_route_itself_turns_away_whom_the_gate_has_let_pass_by_mistake(
    guarded: HttpServer, http: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "allowed_roles", lambda method, path: ANYBODY)
    for operation, method, path in await all_routes(guarded, http):
        if "reader" not in WHO[operation] and operation not in BEFORE_THE_ROUTES:
            headers = {"Authorization": "Bearer t-reader"}
            async with http.request(method, f"{guarded.url}{path}", headers=headers, json={}) as response:
                assert response.status == 403, operation


async def test_a_role_that_may_is_not_turned_away_by_the_route(
    guarded: HttpServer, http: aiohttp.ClientSession
) -> None:
    held = {"case_events", "all_events", "engine_orders"}  # which answer when something happens
    for operation, method, path in await all_routes(guarded, http):
        for role in WHO[operation] if operation not in held else ():
            headers = {"Authorization": f"Bearer t-{role}"}
            async with (
                asyncio.timeout(PATIENCE_S),
                http.request(method, f"{guarded.url}{path}", headers=headers) as response,
            ):
                assert response.status not in (401, 403, 500), f"{role} {operation}: {response.status}"
