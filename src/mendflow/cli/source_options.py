"""Which kinds of sources a server lets rules read."""

from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.sources import GUARDED_KINDS, SourceKind


def allowed_sources(words: list[str]) -> frozenset[SourceKind]:
    """The kinds that `mendflow serve --allow-sources` names."""
    known: dict[str, SourceKind] = {kind: kind for kind in GUARDED_KINDS}
    named = [each.strip() for word in words for each in word.split(",") if each.strip()]
    if bad := [each for each in named if each not in known]:
        raise InvalidRequest(f"--allow-sources {bad[0]!r} is not known; it is one of {', '.join(known)}")
    return frozenset(known[each] for each in named)
