"""Jobs that run to their end."""

from collections.abc import Callable

from mendflow.core.model.faults import Category
from tests.pilot.conftest import Pilot, Server

Hire = Callable[..., Pilot]


async def test_a_command_runs_and_is_reported(server: Server, hire: Hire) -> None:
    hire()
    outcome = await server.outcome(await server.shell("echo hello; echo oops >&2"))
    assert outcome.ok and outcome.exit_code == 0
    assert outcome.log_tail in ("hello\noops\n", "oops\nhello\n")
    assert outcome.measures.stdout_bytes == 6 and outcome.measures.stderr_bytes == 5
    assert outcome.measures.peak_bytes > 0 and outcome.measures.ended_at >= outcome.measures.started_at > 0


async def test_a_function_runs_and_its_value_is_reported(server: Server, hire: Hire) -> None:
    hire()
    outcome = await server.outcome(await server.call("def add(a, b=1): return {'sum': a + b}", "add", 2))
    assert outcome.ok and outcome.outputs == {"sum": 3}


async def test_an_exit_code_is_a_fault_of_the_job(server: Server, hire: Hire) -> None:
    hire()
    outcome = await server.outcome(await server.shell("echo why; exit 7"))
    assert outcome.fault is not None and outcome.fault.category is Category.JOB
    assert outcome.fault.exit_code == 7 and outcome.fault.log_tail == "why\n"
