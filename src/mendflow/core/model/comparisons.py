"""Two cases beside each other: only what differs."""

from mendflow.core.model.ids import CaseId, ItemId
from mendflow.core.model.values import Value
from mendflow.core.model.views import View


class ValueDifference(View, frozen=True):
    """A value that the two do not share. What one of them does not have is null there, and `only` says which has it."""

    path: str
    left: Value = None
    right: Value = None
    only: str = ""


class JobSide(View, frozen=True):
    """The items of a name in one case. `run_ms` is the median of the time from the first grant to the end; `sample` is
    the item whose command and needs are shown."""

    count: int = 0
    states: dict[str, int] = {}
    run_ms: int = 0
    sample: ItemId | None = None
    command: str = ""
    container: str = ""
    image: str = ""
    resources: dict[str, Value] = {}


class JobDifference(View, frozen=True):
    """`differences` names what differs: only-left, only-right, count, states, command, container, image, resources, or
    run_ms, if one takes a quarter longer and more than a second."""

    name: str
    left: JobSide | None
    right: JobSide | None
    differences: list[str]


class CasesCompared(View, frozen=True):
    """`inputs` are those in effect: what was given, else the flow's default. `flow_changed`: they were started with
    different flows, or versions. `is_whole` is false where a case is so large
    that its items are still being read: ask again."""

    left: CaseId
    right: CaseId
    inputs: list[ValueDifference]
    outputs: list[ValueDifference]
    flow_changed: bool
    statuses: list[str]
    jobs: list[JobDifference]
    is_whole: bool = True
