"""Random jobs and random conditions, for searches on every store."""

from typing import Any

import msgspec
from hypothesis import strategies as st

from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.ids import CaseId, ItemId, JobId, PilotId
from mendflow.core.model.jobs import Attempt, Job, JobSpec, JobState, Measurements, Outcome, Resources

NOW = 1_700_000_000_000
OWNERS = ("", "ann", "bob", "Ärzte")
NAMES = ("align", "merge")
FAULT = Fault(name="oom", category=Category.MEMORY, message="out of memory")

_states = st.sampled_from(["available", "completed", "failed"])


@st.composite
def jobs(draw: st.DrawFn) -> list[Job]:
    return [_job(draw, number) for number in range(1, draw(st.integers(0, 12)) + 1)]


def _job(draw: st.DrawFn, number: int) -> Job:
    state, attempts = JobState(draw(_states)), draw(st.integers(0, 4))
    over = state is not JobState.AVAILABLE
    fault = FAULT if state is JobState.FAILED else None
    ran = Measurements(ran_ms=draw(st.sampled_from([0, 500, 600_000])))
    case = CaseId(draw(st.sampled_from(["align-1", "align-2"])))
    return Job(
        id=JobId(f"{case}/{number}"),
        case=case,
        spec=JobSpec(
            item=ItemId(f"{draw(st.sampled_from(NAMES))}[{number}]"),
            command="true",
            owner=draw(st.sampled_from(OWNERS)),
            priority=draw(st.integers(-1, 2)),
            resources=Resources(cpus=draw(st.sampled_from([1.0, 2.0])), memory_bytes=draw(st.sampled_from([0, 10**9]))),
        ),
        name=draw(st.sampled_from(NAMES)),
        state=state,
        created_at=NOW - draw(st.integers(0, 3)) * 3_600_000,
        fence=attempts,
        failures=draw(st.integers(0, 2)),
        history=[Attempt(fence=attempts, pilot=PilotId("p"), host="node7", granted_at=NOW)] if attempts else [],
        outcome=Outcome(fault=fault, exit_code=draw(st.sampled_from([None, 0, 1])), measures=ran) if over else None,
        finished_at=NOW if over else 0,
    )


_atoms = st.sampled_from(
    [
        *("owner == 'ann'", "owner == ''", "owner != 'bob'", "owner in ['ann', 'Ärzte']", "'bob' == owner"),
        *("attempts > 2", "attempts <= 1", "2 >= attempts", "attempts == 3", "attempts != 0", "failures < 1.5"),
        *("priority < 1", "priority > 0", "priority == 0", "priority >= -1"),
        *("state == 'failed'", "state == 'available'", "state != 'completed'", "state in ['failed', 'completed']"),
        *("name == 'align'", "case == 'align-1'", "flow == 'align'", "host == 'node7'", "host == null"),
        *("created > ago('90m')", "created <= '2023-11-14T22:13:20Z'", "finished == null", "finished != null"),
        *("runtime > '1s'", "runtime == null", "exit_code == 0", "exit_code > 0", "exit_code == null"),
        *("fault.category == 'memory'", "fault.category != 'memory'", "fault.category == null"),
        *("fault.message.contains('memory')", "name.startsWith('me')", "item.endsWith('[3]')", "suspended"),
        *("resources.memory >= '1GB'", "resources.memory == 0", "resources.cpus == 2", "attempts + failures > 3"),
        *("id == 'align-1/2'", "name < 'b'", "pilot == null", "size(owner) > 2"),
    ]
)


def _joined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pairs = st.tuples(inner, st.sampled_from(["&&", "&&", "||"]), inner).map(lambda each: f"({' '.join(each)})")
    return pairs | inner.map(lambda each: f"!({each})")


conditions = st.recursive(_atoms, _joined, max_leaves=5)


def data_of(job: Job) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(job)
    return found
