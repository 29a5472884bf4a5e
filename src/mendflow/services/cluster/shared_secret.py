"""The secret that all servers on a store share: the first server makes it, and it is in the store.

From it come the token by which servers recognise each other, and the token of the pilots that servers start themselves,
which so is valid at every server. Whoever can read the store could change every case in it anyway."""

import hashlib
import hmac
import secrets

import msgspec

from mendflow.core.model.errors import StoreUnavailable
from mendflow.stores.contract import Put, Store

SECRET_KIND = "secret"
_ID = "servers"


class SecretDocument(msgspec.Struct, frozen=True):
    secret: str


_decode = msgspec.json.Decoder(SecretDocument).decode


async def shared_secret(store: Store) -> str:
    """The secret of the store; created by the first server that asks."""
    for _ in range(2):
        found = await store.get(SECRET_KIND, _ID)
        if found is not None:
            return _decode(found.body).secret
        draft = SecretDocument(secrets.token_hex(32))
        await store.write([Put(SECRET_KIND, _ID, msgspec.json.encode(draft), 0)])
    raise StoreUnavailable("the secret of the servers can be neither read nor written; start the server again")


async def known_secret(store: Store) -> str:
    """The secret of the store; empty if no server has made one."""
    found = await store.get(SECRET_KIND, _ID)
    return _decode(found.body).secret if found is not None else ""


def derived(secret: str, purpose: str) -> str:
    """A token for one purpose; none can be computed from another."""
    return hmac.new(secret.encode(), purpose.encode(), hashlib.sha256).hexdigest()
