"""Authentication between neighbours: a pilot signs a challenge that the neighbour has just generated.

Each pilot has its own secret, which its server passes to the pilots that may use its cache. The secret is never sent
between pilots. Each challenge is new and valid for one request, so clocks do not matter and a replayed signature is
useless."""

import hashlib
import hmac
import secrets

SCHEME = "Mendflow"
PATH = "/cache/"


def new_secret() -> str:
    return secrets.token_hex(32)


def new_challenge() -> str:
    return secrets.token_hex(16)


def signature(key: str, challenge: str, digest: str) -> str:
    return hmac.new(key.encode(), f"{challenge}\n{digest}".encode(), hashlib.sha256).hexdigest()


def is_signature_valid(key: str, challenge: str, digest: str, claimed: str) -> bool:
    return bool(challenge) and hmac.compare_digest(signature(key, challenge, digest).encode(), claimed.encode())
