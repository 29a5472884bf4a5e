"""What the code of one call can do to the calls of others that run in the same slot: nothing."""

import asyncio
from collections.abc import Callable

import pytest

from mendflow.core.model.ids import ItemId, JobId
from mendflow.core.model.jobs import FunctionRef, JobSpec
from mendflow.pilot.worker.stateless_functions import stateless_function
from tests.pilot.conftest import Pilot, Server

Hire = Callable[..., Pilot]

SPY = """
import gc, os, signal, stat

def look():
    calls = [each for each in gc.get_objects() if type(each).__name__ == "FunctionCall"]
    import sys
    frame, seen = sys._getframe(), []
    while frame is not None:
        seen += [repr(value) for value in frame.f_locals.values()]
        frame = frame.f_back
    links = [n for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}")]
    sockets = [n for n in links if stat.S_ISSOCK(os.stat(f"/proc/self/fd/{n}").st_mode)]
    shared = [line for line in open("/proc/self/maps") if line.rstrip().endswith(".calls")]
    return {"secret": any("of-bob" in each for each in [*seen, *map(repr, calls)]), "sockets": sockets, "maps": shared}

def stop():
    os.kill(os.getppid(), signal.SIGSTOP)
    return "stopped"

def own(text):
    import os
    return text
"""


async def together(server: Server, calls: dict[str, tuple[str, list[str]]]) -> list[JobId]:
    """Submit calls of several cases at once, so that a slot gets them together."""
    code = server.keep(SPY.encode(), "given.py")
    async with server.changed:
        for case, (name, args) in calls.items():
            spec = JobSpec(
                item=ItemId("item"), function=FunctionRef(module="given", name=name, code=code), args=list(args)
            )
            job = JobId(f"{case}/1")
            server.ledger.specs[job] = spec
            server.ledger.waiting.append(job)
        server.changed.notify_all()
    return [JobId(f"{case}/1") for case in calls]


@pytest.mark.full
async def test_a_call_sees_neither_the_calls_of_other_cases_nor_the_link_to_the_slot(
    server: Server, hire: Hire
) -> None:
    jobs = await together(server, {"anns": ("look", []), "bobs": ("own", ["of-bob"])})
    hire()
    seen, his = await asyncio.gather(*(server.outcome(job) for job in jobs))
    assert seen.outputs == {"secret": False, "sockets": [], "maps": []}
    assert his.outputs == "of-bob"


@pytest.mark.full
async def test_a_call_that_stops_its_worker_holds_up_nobody(server: Server, hire: Hire) -> None:
    jobs = await together(server, {"anns": ("stop", []), "bobs": ("own", ["of-bob"])})
    hire()
    stopped, his = await asyncio.gather(*(server.outcome(job) for job in jobs))
    assert (stopped.outputs, his.outputs) == ("stopped", "of-bob")


@pytest.mark.parametrize(
    "body",
    [
        "sys._getframe().f_back",
        "gc.get_objects()",
        "inspect.stack()",
        "ctypes.string_at(x)",
        "[y for y in x].__class__",
        "(y for y in x).gi_frame",
        "'{0.__class__}'.format(x)",
        "getattr(x, '__class__')",
        "print.__self__",
        "json.codecs",
        "math.__loader__",
        "__builtins__",
    ],
)
def test_what_reaches_into_the_interpreter_never_runs_in_the_worker_itself(body: str) -> None:
    source = f"import ctypes, gc, inspect, json, math, sys\ndef f(x): return {body}"
    assert stateless_function(source.encode(), "f") is None
