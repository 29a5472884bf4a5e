"""Cases of a group that cannot go on are started anew, each by itself."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mendflow.cli.rule_applying import GroupRerun, restart_group, say_applied, say_rerun
from mendflow.client import Client
from mendflow.core.model.errors import Conflict, RequestError, StoreUnavailable
from mendflow.core.model.repair_views import ApplyResult
from mendflow.core.model.rule_views import LeftReason

STATUSES = {"f-1": "failed", "f-2": "failed", "f-3": "running", "f-4": "cancelled", "f-5": "completed", "f-6": "failed"}


class FakeClient:
    """No case of the group can go on; `refused` are those that cannot be started anew either."""

    def __init__(self, refused: dict[str, RequestError]) -> None:
        self._refused = refused

    async def apply_rules(self, group: str, **_: Any) -> ApplyResult:
        refused = {f"{case}/1:1:1/abort": "its journal is not here" for case in STATUSES}
        return ApplyResult(group=group, taken_up=[], left=[], refused=refused)

    async def case(self, case: str) -> Any:
        return SimpleNamespace(id=case, status=STATUSES[case])

    async def rerun(self, case: str, **_: Any) -> Any:
        if case in self._refused:
            raise self._refused[case]
        return SimpleNamespace(id=f"{case}-again")


def client_that_refuses(case: str, error: RequestError) -> Client:
    return cast(Client, FakeClient({case: error}))


async def test_one_that_is_refused_keeps_no_other_from_being_started(capsys: pytest.CaptureFixture[str]) -> None:
    client = client_that_refuses("f-1", Conflict("f-1 is being pruned"))
    restarted = await restart_group(client, "abc", unchanged=True)
    assert restarted.started == {"f-2": "f-2-again", "f-6": "f-6-again"}
    assert restarted.not_started["f-1"] == "f-1 is being pruned"
    say_rerun(restarted)
    said = " ".join(capsys.readouterr().out.split())
    assert "f-2-again started in the place of f-2: its journal is not here" in said
    assert "f-1 cannot go on: its journal is not here; none was started in its place: f-1 is being pruned" in said


async def test_only_failed_cases_are_started_anew() -> None:
    restarted = await restart_group(client_that_refuses("f-0", Conflict("")), "abc", unchanged=True)
    assert list(restarted.started) == ["f-1", "f-2", "f-6"]
    assert restarted.not_started == {
        "f-3": "it has not ended",
        "f-4": "it was cancelled",
        "f-5": "it has completed meanwhile",
    }


async def test_a_server_that_cannot_answer_ends_the_command() -> None:
    with pytest.raises(StoreUnavailable):
        await restart_group(client_that_refuses("f-1", StoreUnavailable("no")), "abc", unchanged=True)


@pytest.mark.parametrize("say_it", [say_applied, lambda applied: say_rerun(GroupRerun(applied=applied))])
def test_why_failures_are_left_is_told_by_the_reason(
    say_it: Callable[[ApplyResult], None], capsys: pytest.CaptureFixture[str]
) -> None:
    why_left: dict[str, LeftReason] = {"f-1/1": "no-rule", "f-2/1": "stopped", "f-3/1": "no-rule"}
    say_it(ApplyResult(group="abc", taken_up=[], left=[*why_left, "f-4/1"], why_left=why_left))
    assert capsys.readouterr().out.splitlines() == [
        "4 failures are left as they are:",
        "  taken up by no rule: f-1/1, f-3/1",
        "  not begun, as somebody has stopped this: f-2/1",
        "  the server does not say why: f-4/1",
    ]
