"""Versions of a rule set: an earlier one brought back as the newest."""

import msgspec

from mendflow.core.model.ids import Instant
from mendflow.core.model.rules import RuleSet


def restore(current: RuleSet, earlier: RuleSet, *, author: str = "", at: Instant = 0) -> RuleSet:
    """An earlier version as the newest."""
    note = f"version {earlier.version} again"
    return msgspec.structs.replace(earlier, version=current.version + 1, author=author, at=at, note=note)
