"""Shell completion: cases and their contents, flows, tasks, groups of failures and rule sets of the selected server.

Typing must not block: no server is started, a slow one is not waited for, and any error yields no completions."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from mendflow.cli.options import ServerTarget
from mendflow.cli.server_file import find_server
from mendflow.client import Client
from mendflow.core.model.errors import RequestError

ANSWER_S_MAX = 1.0
COMPLETIONS_MAX = 50


def cases(params: Mapping[str, Any], incomplete: str) -> list[str]:
    async def ask(client: Client) -> list[str]:
        return ["last", *(str(view.id) for view in await client.cases(limit=COMPLETIONS_MAX))]

    return _completions(params, incomplete, ask)


def subjects(params: Mapping[str, Any], incomplete: str) -> list[str]:
    """Cases and pilots; after `CASE:` its items."""

    async def ask(client: Client) -> list[str]:
        case, colon, _ = incomplete.partition(":")
        if colon:
            return [f"{case}:{item.item}" for item in await client.items(case, limit=COMPLETIONS_MAX)]
        named = [str(view.id) for view in await client.cases(limit=COMPLETIONS_MAX)]
        return ["last", *named, *(str(view.id) for view in await client.pilots())]

    return _completions(params, incomplete, ask)


def printing(params: Mapping[str, Any], incomplete: str) -> list[str]:
    """Jobs as items, `CASE:ITEM`; before a case is typed, those of the last one, and the other cases."""

    async def ask(client: Client) -> list[str]:
        case, colon, _ = incomplete.partition(":")
        items = await client.items(case if colon else "last", limit=COMPLETIONS_MAX)
        found = [f"{case if colon else 'last'}:{item.item}" for item in items if item.job]
        return found if colon else [*found, *(f"{view.id}:" for view in await client.cases(limit=COMPLETIONS_MAX))]

    return _completions(params, incomplete, ask)


def worklist(params: Mapping[str, Any], incomplete: str) -> list[str]:
    async def ask(client: Client) -> list[str]:
        found = await client.worklist(limit=COMPLETIONS_MAX)
        return [view.id for view in found if view.state in ("offered", "claimed")]

    return _completions(params, incomplete, ask)


def flows(params: Mapping[str, Any], incomplete: str) -> list[str]:
    async def ask(client: Client) -> list[str]:
        return [view.name for view in await client.flows()]

    return _completions(params, incomplete, ask)


def groups(params: Mapping[str, Any], incomplete: str) -> list[str]:
    async def ask(client: Client) -> list[str]:
        return [view.id for view in await client.failures(limit=COMPLETIONS_MAX)]

    return _completions(params, incomplete, ask)


def rule_sets(params: Mapping[str, Any], incomplete: str) -> list[str]:
    async def ask(client: Client) -> list[str]:
        return [view.name for view in await client.rule_sets()]

    return _completions(params, incomplete, ask)


def _completions(
    params: Mapping[str, Any], incomplete: str, ask: Callable[[Client], Awaitable[list[str]]]
) -> list[str]:
    target = ServerTarget(*(params.get(name) or "" for name in ("server", "token_file", "data")))
    found = None if target.server else find_server(target.folder)
    if found is None and not target.server:
        return []

    async def answer() -> list[str]:
        url, token = (found.url, found.token) if found else (target.server, "")
        async with asyncio.timeout(ANSWER_S_MAX), Client(url, token or target.token()) as client:
            return await ask(client)

    try:
        return [name for name in asyncio.run(answer()) if name.startswith(incomplete)]
    except (RequestError, OSError, TimeoutError):
        return []
