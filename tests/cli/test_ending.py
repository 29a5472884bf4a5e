"""What belongs to a case that has ended."""

from typing import cast

from mendflow.cli.case_ending import called_cases
from mendflow.client import Client
from mendflow.core.model.ids import CaseId
from mendflow.core.model.views import CaseView


def view(id: str, at: int, *, parent: str = "", mends: str = "") -> CaseView:
    return CaseView(
        id=CaseId(id),
        flow="f",
        digest="d",
        status="completed",
        started_at=at,
        parent=CaseId(parent) if parent else None,
        mends=CaseId(mends) if mends else None,
    )


class Cases:
    """Lists cases as a server does, the newest first, and of one moment in no order that could be relied upon."""

    def __init__(self, *views: CaseView) -> None:
        self._views = list(views)

    async def cases(self, *, limit: int, offset: int) -> list[CaseView]:
        return self._views[offset : offset + limit]


async def test_cases_that_begin_in_the_same_millisecond_as_their_parent_belong_to_it() -> None:
    case = view("night", 5)
    undo, undone, exlet = view("u", 7, parent="x"), view("v", 7, parent="u"), view("x", 7, mends="night")
    listed = Cases(undone, undo, view("other", 7, parent="day"), exlet, case)
    called = await called_cases(cast("Client", listed), case, mended=True)
    assert {each.id for each in called} == {"u", "v", "x"}
