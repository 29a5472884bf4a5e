"""The description is true: it names every route, its schemas are sound, and real answers fit them."""

import re
from pathlib import Path
from typing import Any

import aiohttp
import jsonschema
import pytest
from litestar import Litestar

from mendflow.client import Client
from mendflow.server import api_description
from mendflow.server.app import routes
from mendflow.server.pilot_api import SYNC_PATH
from mendflow.server.pilot_lookups import LOOKUP_PATHS
from mendflow.server.runner import HttpServer
from tests.server.conversation import SEVERAL, do_jobs, loop_flow, task_flow

Json = dict[str, Any]
METHODS = {"get", "put", "post", "delete", "patch", "head"}
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "api.md"


@pytest.fixture
async def description(served: HttpServer, http: aiohttp.ClientSession) -> Json:
    async with http.get(f"{served.url}/api/v1/openapi.json") as response:
        assert response.status == 200
        return dict(await response.json())


def _described(description: Json) -> set[tuple[str, str]]:
    return {(method.upper(), path) for path, item in description["paths"].items() for method in item}


def _routed(app: Litestar) -> set[tuple[str, str]]:
    """What the application answers to, in the form of the description."""
    routed = {("POST", path) for path in (SYNC_PATH, *LOOKUP_PATHS)}
    for route in app.routes:
        path = re.sub(r"\{(\w+):\w+\}", r"{\1}", route.path)
        routed |= {(method, path) for method in getattr(route, "methods", ()) if method != "OPTIONS"}
    return routed


def _all(value: Any, key: str) -> list[Any]:
    """Every value under that key, at any depth."""
    if isinstance(value, list):
        return [found for one in value for found in _all(one, key)]
    if not isinstance(value, dict):
        return []
    here = [value[key]] if key in value else []
    return here + [found for one in value.values() for found in _all(one, key)]


async def test_every_route_is_described_and_nothing_else(description: Json) -> None:
    assert _described(description) == _routed(routes())


async def test_every_reference_has_its_schema_and_every_schema_is_sound(description: Json) -> None:
    schemas = description["components"]["schemas"]
    for ref in _all(description, "$ref"):
        assert ref.removeprefix("#/components/schemas/") in schemas
    for schema in schemas.values():
        jsonschema.Draft202012Validator.check_schema(schema)


async def test_every_operation_says_what_a_client_needs(description: Json) -> None:
    ids = _all(description["paths"], "operationId")
    assert len(ids) == len(set(ids)) == len(_described(description))
    for path, item in description["paths"].items():
        assert set(item) <= METHODS
        for operation in item.values():
            named = {one["name"] for one in operation.get("parameters", ()) if one["in"] == "path"}
            assert named == set(re.findall(r"\{(\w+)\}", path))
            assert operation["summary"]
            assert {"400", "404", "429", "500", "503"} <= set(operation["responses"])
            assert not [status for status in operation["responses"] if "X" in status]
            for content in operation.get("requestBody", {"content": {}})["content"].values():
                assert content["schema"]


async def test_what_needs_no_token_says_so_and_words_that_are_keys_are_named(description: Json) -> None:
    open_to_all = {
        operation["operationId"]
        for path in description["paths"].values()
        for operation in path.values()
        if operation.get("security") == []
    }
    assert {"health", "openapi", "docs", "sign_in"} <= open_to_all
    assert "cases" not in open_to_all
    trees = description["components"]["schemas"]["RuleSet"]["properties"]["trees"]
    assert "abort" in trees["propertyNames"]["enum"]
    rules = description["components"]["schemas"]["RuleTree"]["properties"]["rules"]
    assert re.fullmatch(rules["propertyNames"]["pattern"], "12")


async def test_real_answers_fit_the_description(
    served: HttpServer, client: Client, http: aiohttp.ClientSession, description: Json
) -> None:
    await client.deploy(task_flow())
    await client.start("ask")
    await client.deploy(loop_flow())
    case = await client.start("many", {"n": [1, {"a": None}]})
    await do_jobs(client, SEVERAL)
    await client.wait(case.id)
    job = (await client.jobs())[0].id
    item = (await client.items(case.id, name="turn"))[0].item
    asked = {
        "/flows": "/flows",
        "/flows/{name}": "/flows/many",
        "/cases": "/cases",
        "/cases/{case}": f"/cases/{case.id}",
        "/cases/{case}/items": f"/cases/{case.id}/items",
        "/cases/{case}/items/{item}": f"/cases/{case.id}/items/{item}",
        "/jobs": "/jobs",
        "/jobs/{case}/{serial}": f"/jobs/{job}",
        "/worklist": "/worklist",
        "/pilots": "/pilots",
        "/why": f"/why?subject={case.id}",
        "/alerts": "/alerts?severity=info",
        "/health": "/health",
        "/rules": "/rules",
        "/rules/{name}": "/rules/*",
        "/rules/{name}/versions": "/rules/*/versions",
        "/failures": "/failures",
        "/decisions": "/decisions",
        "/cases/{case}/history": f"/cases/{case.id}/history",
        "/patterns": "/patterns",
        "/levels": "/levels",
        "/compensations": "/compensations",
        "/engines": "/engines",
    }
    for path, url in asked.items():
        operation = description["paths"][f"/api/v1{path}"]["get"]
        schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
        async with http.get(f"{served.url}/api/v1{url}") as response:
            assert response.status == 200
            _fits(await response.json(), schema, description)
    refusal = description["paths"]["/api/v1/cases/{case}"]["get"]["responses"]["404"]["content"]["application/json"]
    async with http.get(f"{served.url}/api/v1/cases/none") as response:
        _fits(await response.json(), refusal["schema"], description)


def _fits(answer: Any, schema: Json, description: Json) -> None:
    whole = {**schema, "components": description["components"]}
    jsonschema.Draft202012Validator(whole).validate(answer)


async def test_the_page_shows_every_route_and_needs_no_network(
    served: HttpServer, http: aiohttp.ClientSession, description: Json
) -> None:
    async with http.get(f"{served.url}/api/v1/docs") as response:
        assert response.headers["Content-Type"].startswith("text/html")
        page = await response.text()
    for path in description["paths"]:
        assert path in page
    assert "http://" not in page
    assert "https://" not in page
    assert "<script" not in page


async def test_the_reference_names_every_route_and_nothing_else(description: Json) -> None:
    written = set(re.findall(r"`(GET|PUT|POST|DELETE|HEAD) (/api/v1/[^`?]*)", PAGE.read_text()))
    assert written == _described(description)


@pytest.mark.parametrize("path", ["openapi.json", "docs"])
async def test_the_description_is_written_once_and_sent_to_who_does_not_have_it(  # SE-3
    served: HttpServer, http: aiohttp.ClientSession, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with http.get(f"{served.url}/api/v1/{path}") as response:
        whole, etag = await response.read(), response.headers["ETag"]
        assert response.headers["Content-Encoding"] == "gzip"
    monkeypatch.setattr(api_description, "page_of", None)
    monkeypatch.setattr(api_description, "encode_json", None)
    async with http.get(f"{served.url}/api/v1/{path}", headers={"Accept-Encoding": "identity"}) as response:
        assert "Content-Encoding" not in response.headers
        assert await response.read() == whole
    async with http.get(f"{served.url}/api/v1/{path}", headers={"If-None-Match": etag}) as response:
        assert (response.status, await response.read()) == (304, b"")
