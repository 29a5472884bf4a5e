"""Signatures, by which a receiver can tell that a notification is from this server, and is not an old one sent again.

The signature is over the time of sending, a dot, and the body: `t=SECONDS,v1=HEX`. The receiver computes the same with
the secret, compares the two in constant time, and refuses what is older than a few minutes."""

import hashlib
import hmac
from typing import Final

from mendflow.core.model.ids import Instant

SIGNATURE_HEADER: Final = "Mendflow-Signature"
EVENT_HEADER: Final = "Mendflow-Event"
KIND_HEADER: Final = "Mendflow-Event-Kind"


def signature(secret: str, body: bytes, at: Instant) -> str:
    seconds = at // 1000
    made = hmac.new(secret.encode(), f"{seconds}.".encode() + body, hashlib.sha256)
    return f"t={seconds},v1={made.hexdigest()}"
