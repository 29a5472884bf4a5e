"""How a pilot shows a neighbour that it may have a file: it signs what the neighbour has just made up.

Each pilot has a secret of its own, which its server passes on to those who may use its cache. The secret itself never
goes over the line between pilots. What is signed is new each time and good for one request, so nobody's clock matters
and what was overheard opens nothing."""

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
