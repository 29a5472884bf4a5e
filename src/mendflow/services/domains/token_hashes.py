"""Tokens are stored as hashes only, which are compared in a time that tells nothing of them."""

import hashlib
import hmac


def sha256_of(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def is_same_hash(one: str, other: str) -> bool:
    return hmac.compare_digest(one, other)
