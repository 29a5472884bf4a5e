"""Named limits: how many jobs may use something at once, over all cases and servers."""

from mendflow.core.model.named_limits import LimitCount, LimitView
from mendflow.operations.arguments import Body
from mendflow.operations.names import ProjectName
from mendflow.operations.operation import Calls, operation
from mendflow.operations.roles import AUTHORS, VIEWERS
from mendflow.operations.subjects import LIMIT, LISTED, NEW_LIMIT


class LimitCalls(Calls, tag="limits"):
    @operation("GET", "/limits", VIEWERS, LISTED)
    async def limits(self) -> list[LimitView]:
        """Named limits, by name, with the jobs that use them. One that jobs name and nobody has set has no count."""

    @operation("GET", "/limits/{name}", VIEWERS, LIMIT)
    async def limit(self, name: str) -> LimitView:
        """A named limit: its count, the jobs that use it, and how many wait for it."""

    @operation("PUT", "/limits/{name}", AUTHORS, NEW_LIMIT, repeatable=True)
    async def set_limit(self, name: str, count: Body[LimitCount], *, project: ProjectName = "") -> LimitView:
        """Set how much there is of a limit. It holds at once: if that is less than is in use, no job is stopped, and
        none is started until enough was given back."""

    @operation("DELETE", "/limits/{name}", AUTHORS, LIMIT)
    async def remove_limit(self, name: str) -> LimitView:
        """Remove a limit. Jobs that use it and run go on; those that wait, wait until it is set again."""
