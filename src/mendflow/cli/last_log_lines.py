"""The last lines that a failed job printed. Of a Python traceback that ends deep inside libraries, the innermost line
of the user's own code is kept, as that is where to look."""

from typing import Final

TRACEBACK: Final = "Traceback (most recent call last):"
FRAME: Final = '  File "'
LIBRARIES: Final = ("/site-packages/", "/dist-packages/", "/lib/python", "<frozen ")


def end_of_output(text: str, limit: int) -> list[str]:
    """The last lines, at most `limit`. If they leave out the innermost frame of the user's own code, they begin with
    it."""
    lines = text.splitlines()
    start = max(len(lines) - limit, 0)
    own = _innermost_own_frame(lines)
    if own is None or own >= start:
        return lines[start:]
    has_source = own + 1 < len(lines) and not lines[own + 1].startswith(FRAME)
    frame = lines[own : own + 2] if has_source else lines[own : own + 1]
    rest = max(limit - len(frame) - 1, 1)
    return [*frame, "  ...", *lines[-rest:]]


def _innermost_own_frame(lines: list[str]) -> int | None:
    """Where the last traceback names code that belongs to no library."""
    begins = [place for place, line in enumerate(lines) if line.strip() == TRACEBACK]
    if not begins:
        return None
    own = [
        place
        for place in range(begins[-1], len(lines))
        if lines[place].startswith(FRAME) and not any(part in lines[place] for part in LIBRARIES)
    ]
    return own[-1] if own else None
