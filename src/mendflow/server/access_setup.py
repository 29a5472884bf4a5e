"""What decides who may ask a server, put together: the tokens that it was given, those that it makes for its own
pilots, those in the store, and the issuer."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple

from mendflow.address_guard import PUBLIC_ONLY, AddressGuard
from mendflow.core.model.errors import StoreUnavailable
from mendflow.core.model.principals import PILOT
from mendflow.server.access import AccessControl, AccessToken, new_token, token_hash
from mendflow.server.failed_attempts import AttemptThrottle
from mendflow.server.oidc import OidcIssuer, OidcOptions
from mendflow.services.base.background_tasks import cancel_tasks
from mendflow.services.cluster.shared_secret import derived, shared_secret
from mendflow.services.runtime.server import Server

SITES_TOKEN = "site-pilots"
"""The name of the token that pilots of sites use. It is derived from the store's secret, so that a server that is
restarted, and every other on the store, recognises the pilots that are there."""

TOLD_OWNERS_MAX = 3
"""So many names are told: more than one are several."""
LOOK_S = 1.0


class ServerAccess(NamedTuple):
    """`pilot_token` is for the pilot beside the server, `sites_token` for those of sites; both are empty where the
    account that runs the server needs none."""

    control: AccessControl
    pilot_token: str
    sites_token: str


class SharedTokens(NamedTuple):
    """What servers on one store share: the token by which they know each other, and one that a pilot of any of them
    may use. Both are empty for a server that is alone."""

    servers: str = ""
    pilots: str = ""


@asynccontextmanager
async def server_access(
    server: Server,
    tokens: Sequence[AccessToken],
    oidc: OidcOptions | None,
    *,
    shared: SharedTokens,
    guard: AddressGuard = PUBLIC_ONLY,
    takes_stored: bool = True,
) -> AsyncIterator[ServerAccess]:
    """Follows the tokens in the store for as long as the block lasts. `guard` is what the server may call. Without
    `takes_stored` they open nothing here: jobs of such a server run as the one who started it, for a case of his
    own."""
    is_guarded = bool(tokens) or oidc is not None
    pilot_token = sites_token = ""
    own: list[AccessToken] = []
    if is_guarded:
        # What a job can read of its pilot must not let it do more than a pilot may. The token is new each time, or
        # shared with other servers, which such a pilot may connect to.
        pilot_token = shared.pilots or new_token("local-pilot", [PILOT])[0]
        sites_token = derived(await shared_secret(server.store), "pilots of sites")
        own = [
            AccessToken("local-pilot", frozenset({PILOT}), token_hash(pilot_token)),
            AccessToken(SITES_TOKEN, frozenset({PILOT}), token_hash(sites_token)),
        ]
    server.hidden.add(pilot_token, sites_token, shared.servers)
    control = AccessControl(
        tokens,
        own_tokens=own,
        stored=server.access_tokens if takes_stored else None,
        issuer=OidcIssuer(oidc, guard=guard) if oidc is not None else None,
        servers_token=shared.servers,
        failures=AttemptThrottle(server.counts.access_refused.add),
        hide=server.hidden.add_used,
    )
    await server.access_tokens.read()
    telling = asyncio.create_task(tell_job_owners(server, control))
    following = asyncio.create_task(server.access_tokens.follow(shared=server.membership.shared))
    try:
        yield ServerAccess(control, pilot_token, sites_token)
    finally:
        await cancel_tasks(following, telling)
        with suppress(StoreUnavailable):
            await server.access_tokens.write_uses()


async def tell_job_owners(server: Server, control: AccessControl) -> None:
    """Have the other servers on the store know who may let jobs run at this one, from its next heartbeat on."""
    while server.membership.shared:
        if (own := server.membership.find(server.membership.id)) is not None:
            own.job_owners = sorted(control.job_owners())[:TOLD_OWNERS_MAX]
        await asyncio.sleep(LOOK_S)
