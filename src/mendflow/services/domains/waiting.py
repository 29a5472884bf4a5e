"""Waiting for the first of several things."""

import asyncio
from collections.abc import Coroutine
from typing import Any


async def first_of(*things: Coroutine[Any, Any, object]) -> None:
    """Return when one of these has ended; the others are given up."""
    tasks = [asyncio.ensure_future(each) for each in things]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
