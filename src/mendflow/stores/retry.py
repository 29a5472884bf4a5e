"""How long a store that is away is retried, and the waits between tries.

The waits grow, and are randomized, so that servers that lost the same store at the same moment do not retry in step."""

import asyncio
import random
import time

from mendflow.stores.contract import RETRIES

FIRST_WAIT_S = 0.05
LONGEST_WAIT_S = 2.0


class RetryTimer:
    """Shared by all tries of one operation. It starts with the first failure, or when it is first read."""

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._until = 0.0
        self._wait_s = FIRST_WAIT_S

    @property
    def left_s(self) -> float:
        self._until = self._until or time.monotonic() + self._patience_s
        return self._until - time.monotonic()

    async def wait(self) -> bool:
        """Wait for the next try; False if there is none."""
        left_s = self.left_s
        if left_s <= 0:
            return False
        await asyncio.sleep(min(left_s, self._wait_s * random.uniform(0.5, 1.0)))
        self._wait_s = min(self._wait_s * 2, LONGEST_WAIT_S)
        RETRIES.times += 1
        return True
