"""What things are named by in requests."""

from typing import Annotated

from msgspec import Meta

from mendflow.core.model.parameters import NUMBER_MAX
from mendflow.operations.arguments import IdParts, Named

CaseName = Annotated[str, Meta(description="A case's id, or the word `last`.")]
JobSerial = Annotated[
    str,
    Meta(description="The number after the slash of the id; with `~2` and so on where the job was submitted again."),
]
TaskSerial = Annotated[int, Meta(ge=0, le=NUMBER_MAX, description="The number after the slash of the id.")]
JobName = Annotated[str, IdParts(CaseName, JobSerial)]
TaskName = Annotated[str, IdParts(CaseName, TaskSerial)]
GroupName = Annotated[str, Meta(description="A group's id, or its beginning.")]
CountedBy = Annotated[str, Meta(description="Count by the value of this name.")]
ClosedToo = Annotated[bool, Named("all"), Meta(description="Those that are over too.")]
ProjectName = Annotated[
    str,
    Meta(
        max_length=64,
        description="The project that it belongs to, if it is new; the only one of the caller's, or `default`.",
    ),
]
