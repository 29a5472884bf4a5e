"""Sources are read for real: commands, files, databases and HTTP, each with its secret and never with its syntax."""

import socket
import sqlite3
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.abc import ResolveResult
from aiohttp.resolver import ThreadedResolver
from aiohttp.test_utils import TestServer

from mendflow.address_guard import OWN_MACHINE, PUBLIC_ONLY
from mendflow.core.model.sources import SourceKind
from mendflow.core.model.values import Value
from mendflow.server.source_reads import ServerSourceReader
from mendflow.services.base.source_reader import SourceAway, SourceRequest

READER = ServerSourceReader(OWN_MACHINE, allowed=frozenset({"command", "sql", "file"}))
PUBLIC = ServerSourceReader(PUBLIC_ONLY, allowed=frozenset())


def asking(kind: SourceKind, address: str, query: str = "", secret: str = "", **parameters: Value) -> SourceRequest:
    return SourceRequest(
        kind=kind,
        address=address,
        query=query,
        secret=secret,
        timeout_ms=2_000,
        parameters={f"case.data.{name}": value for name, value in parameters.items()},
    )


COMMANDS = [
    # row, command, values, the value or what is told
    ("json", "echo '{\"a\": 1}'", {}, {"a": 1}),
    ("text", "echo some words", {}, "some words"),
    ("secret by variable", "sh -c 'echo $MENDFLOW_SOURCE_SECRET'", {}, "hush"),
    ("value as one argument", "echo is {case.data.x}", {"x": "a; echo b"}, "is a; echo b"),
    ("value that would be an option", "cat {case.data.x}", {"x": "--help"}, SourceAway("would be an option")),
    ("fails", "false", {}, SourceAway("false ended with status 1")),
    ("not there", "no-such-program-here", {}, SourceAway("cannot be started")),
]


@pytest.mark.parametrize(("command", "values", "expected"), [row[1:] for row in COMMANDS], ids=[r[0] for r in COMMANDS])
async def test_a_command_is_run(command: str, values: dict[str, Value], expected: object) -> None:  # EX-6
    request = asking("command", command, secret="hush", **values)
    if isinstance(expected, SourceAway):
        with pytest.raises(SourceAway, match=str(expected)):
            await READER.read(request)
    else:
        assert await READER.read(request) == expected


async def test_a_file_is_read(tmp_path: Path) -> None:  # EX-6
    (tmp_path / "quota.json").write_text('{"left": 3}')
    assert await READER.read(asking("file", str(tmp_path / "quota.json"))) == {"left": 3}
    with pytest.raises(SourceAway, match="cannot be read: No such file"):
        await READER.read(asking("file", str(tmp_path / "none")))


QUERIES = [
    ("one value", "select count(*) from stock where name = {case.data.x}", "it's", 1),
    ("nothing", "select amount from stock where name = {case.data.x}", "x' or 1=1 --", None),
    ("one row", "select name, amount from stock where amount > 1", "", {"name": "it's", "amount": 2}),
    ("rows", "select amount from stock order by amount", "", [{"amount": 1}, {"amount": 2}]),
    ("a change", "delete from stock", "", SourceAway("readonly")),
    ("wrong", "select x from nowhere", "", SourceAway("no such table")),
]


@pytest.mark.parametrize(("query", "x", "expected"), [row[1:] for row in QUERIES], ids=[row[0] for row in QUERIES])
async def test_a_database_is_asked(tmp_path: Path, query: str, x: str, expected: object) -> None:  # EX-6
    with sqlite3.connect(tmp_path / "s.db") as made:
        made.execute("create table stock (name text, amount int)")
        made.executemany("insert into stock values (?, ?)", [("it's", 2), ("other", 1)])
    request = asking("sql", f"sqlite:///{tmp_path / 's.db'}", query, **({"x": x} if "{" in query else {}))
    if isinstance(expected, SourceAway):
        with pytest.raises(SourceAway, match=str(expected)):
            await READER.read(request)
    else:
        assert await READER.read(request) == expected


async def stock(request: web.Request) -> web.Response:
    if request.headers.get("Authorization") != "Bearer hush":
        return web.Response(status=403)
    return web.json_response({"asked": request.match_info["name"]})


async def moved(request: web.Request) -> web.Response:
    raise web.HTTPFound("/stock/x")


async def test_an_address_is_fetched_with_its_secret_and_redirects_are_not_followed() -> None:  # EX-6
    app = web.Application()
    app.router.add_get("/stock/{name}", stock)
    app.router.add_get("/moved", moved)
    async with TestServer(app) as server:
        address = f"http://127.0.0.1:{server.port}"
        found = await READER.read(asking("http", address + "/stock/{case.data.x}", secret="hush", x="a/../b?c"))
        assert found == {"asked": "a/../b?c"}
        for path, secret, told in (("/stock/a", "", "status 403"), ("/moved", "hush", "status 302")):
            with pytest.raises(SourceAway, match=told):
                await READER.read(asking("http", address + path, secret=secret))
    with pytest.raises(SourceAway, match="no connection"):
        await READER.read(asking("http", address + "/stock/a"))


async def private_host(*_: object) -> list[ResolveResult]:
    flags = socket.AI_NUMERICHOST
    return [ResolveResult(hostname="inner", host="10.0.0.1", port=80, family=socket.AF_INET, proto=0, flags=flags)]


async def test_a_name_of_a_private_address_is_not_fetched(monkeypatch: pytest.MonkeyPatch) -> None:  # EX-6
    monkeypatch.setattr(ThreadedResolver, "resolve", private_host)
    with pytest.raises(SourceAway, match=r"inner\.example\.org is a private address"):
        await PUBLIC.read(asking("http", "http://inner.example.org/x"))
