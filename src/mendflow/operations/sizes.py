"""What was learned of the memory and the time that jobs need."""

from mendflow.core.model.parameters import Limit
from mendflow.core.model.size_views import SizeView
from mendflow.operations.operation import Calls, operation
from mendflow.operations.roles import VIEWERS
from mendflow.operations.subjects import LISTED


class SizeCalls(Calls, tag="learning"):
    @operation("GET", "/learning/sizes", VIEWERS, LISTED)
    async def sizes(self, *, flow: str = "", name: str = "", limit: Limit = 1000) -> list[SizeView]:
        """What jobs asked for and used, and what the next would ask for, by flow and name. Of one flow, or of jobs of
        one name."""
