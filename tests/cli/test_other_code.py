"""The summary names results that were made by other code than their jobs name."""

import pytest

from mendflow.cli.case_ending import CaseEnding
from mendflow.cli.summary import print_summary
from mendflow.core.model.ids import CaseId, ItemId
from mendflow.core.model.jobs import CHANGED_BESIDE
from mendflow.core.model.views import CaseView, ItemView


def test_results_of_other_code_are_named_with_the_command_that_makes_them_again(
    capsys: pytest.CaptureFixture[str],
) -> None:  # DU-2
    case = CaseView(id=CaseId("f-1"), flow="f", digest="", status="completed", started_at=1, ended_at=2)
    items = [
        ItemView(
            case=case.id,
            item=ItemId(name),
            name=name,
            kind="job",
            serial=serial,
            state="completed",
            code_mismatch=f"helper.py{CHANGED_BESIDE}" if name == "second" else "",
        )
        for serial, name in enumerate(("first", "second"))
    ]
    print_summary(CaseEnding(case=case, items=items), {}, source="mendflow run f.py")
    told = " ".join(capsys.readouterr().out.split())
    assert "made by other code than the case began with: second (helper.py changed meanwhile)" in told
    assert "mendflow run f.py makes them again" in told
