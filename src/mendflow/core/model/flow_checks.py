"""What is wrong with the text of a flow file, and where."""

from typing import Literal

from mendflow.core.model.flow import Flow
from mendflow.core.model.flow_files import FileBeside
from mendflow.core.model.graphs import GraphView
from mendflow.core.model.views import View


class FlowProblem(View, frozen=True):
    """`line` and `column` count from 1, and are 0 where the place is not known. `hint` is what was probably meant. A
    `remark` keeps nobody from deploying the flow."""

    severity: Literal["error", "remark"]
    message: str
    line: int = 0
    column: int = 0
    hint: str = ""


class FlowCheck(View, frozen=True):
    """`flow` and its `graph` are there if it has no errors. `beside` has the files beside it that it names."""

    ok: bool
    problems: list[FlowProblem] = []
    beside: list[FileBeside] = []
    flow: Flow | None = None
    graph: GraphView | None = None
