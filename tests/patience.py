"""How long a test waits for what must come about. It goes on as soon as that has, so only a failure takes this long;
with less a busy machine would break it. What must be quick is measured elsewhere."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any

PATIENCE_S = 200.0


async def until(check: Callable[[], Awaitable[Any] | Any], what: str = "", *, every_s: float = 0.005) -> Any:
    """What the check gives when it gives something."""
    end = time.monotonic() + PATIENCE_S
    while True:
        found = check()
        if inspect.isawaitable(found):
            found = await found
        if found:
            return found
        assert time.monotonic() < end, f"this never came: {what or check}"
        await asyncio.sleep(every_s)
