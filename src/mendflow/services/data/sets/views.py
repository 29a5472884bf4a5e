"""Views of data sets."""

from collections import Counter
from collections.abc import Callable, Mapping

from mendflow.core.data.data_set import DataSet, FileBatch, GatheringState, due_at, waits_for
from mendflow.core.data.set_specs import describe_gathering
from mendflow.core.model.data_sets import BatchView, DataSetView, GatheringView


def set_view(state: DataSet, find: Callable[[str], DataSet | None]) -> DataSetView:
    return DataSetView(
        name=state.name,
        state="over" if state.is_drained else "closed" if state.closed else "open",
        files=len(state.files),
        bytes=state.bytes,
        late=state.late,
        after=list(state.after),
        gatherings=[_gathering(pool) for pool in state.pools.values() if not pool.removed or pool.batches],
        waits_for=list(waits_for(state, find)),
        made_at=state.made_at,
        closed_at=state.closed_at,
    )


def _gathering(pool: GatheringState) -> GatheringView:
    return GatheringView(
        name=pool.rule.name,
        flow=pool.rule.flow,
        rule="taken away" if pool.removed else describe_gathering(pool.rule),
        wish=pool.rule,
        waiting_files=len(pool.waiting),
        waiting_bytes=pool.waiting_bytes(),
        due_at=due_at(pool),
        batches=dict(Counter(batch.status for batch in pool.batches)),
    )


def batch_view(batch: FileBatch, problems: Mapping[str, str], key: str) -> BatchView:
    return BatchView(
        gathering=batch.rule.name,
        number=batch.number,
        flow=batch.rule.flow,
        files=batch.count,
        bytes=batch.bytes,
        why=batch.why,
        made_at=batch.made_at,
        status=batch.status,
        attempt=batch.attempt,
        case=batch.case,
        problem=problems.get(key, "") if batch.status == "waiting" else "",
    )
