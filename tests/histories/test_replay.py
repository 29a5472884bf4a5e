"""Journals that earlier versions wrote lead to what they led to then. A journal holds facts alone and everything else
is worked out again, so a change in what follows from a fact would change the past of every case on disk."""

import json
from pathlib import Path

import pytest

from mendflow.core.engine import Case, evolve, restore, snapshot, validate
from mendflow.core.engine.messages import (
    Event,
    FireTimer,
    ForceComplete,
    ForceFail,
    MarkCompensated,
    Proceed,
    RemoveItem,
    RestartItem,
    Resume,
    Suspend,
    WriteData,
)
from tests.histories.history import in_order, journal_of, paths, summary, told

HISTORIES = paths()


@pytest.fixture(params=HISTORIES, ids=[path.name.split(".")[0] for path in HISTORIES])
def path(request: pytest.FixtureRequest) -> Path:
    found = request.param
    assert isinstance(found, Path)
    return found


def test_the_same_events_lead_to_the_same_orders(path: Path) -> None:
    written = [json.loads(line) for line in path.read_text().splitlines()]
    now = told(journal_of(path))
    for number, (then, again) in enumerate(zip(written, now, strict=True), start=1):
        then.pop("event", None)
        again.pop("event", None)
        assert json.loads(json.dumps(again)) == then, f"{path.name}:{number}: what follows from this event has changed"


def test_a_case_goes_on_from_a_snapshot_as_if_there_had_been_none(path: Path) -> None:
    journal = journal_of(path)
    middle = len(journal) // 2
    case = Case.blank()
    for event in journal[:middle]:
        evolve(case, event)
    fresh = restore(snapshot(case))
    for event in journal[middle:]:
        assert summary(evolve(fresh, event)) == summary(evolve(case, event))
    validate(fresh)
    assert in_order(fresh) == in_order(case)


def test_the_histories_are_rich_enough_to_guard_the_engine() -> None:
    facts = {type(event.fact) for path in HISTORIES for event in journal_of(path)}
    steering = {RestartItem, Suspend, Resume, RemoveItem, WriteData, ForceFail, ForceComplete, MarkCompensated}
    assert {FireTimer, Proceed, *steering} <= facts
    text = "".join(path.read_text() for path in HISTORIES)
    kinds = [
        "scope",
        "parallel",
        "for-each",
        "choose",
        "while",
        "until",
        "pick",
        "receive",
        "user-task",
        "stage",
        "call",
        "mend",
    ]
    assert not [kind for kind in [*kinds, "compensate", "throw", "assign", "wait"] if f'"kind": "{kind}"' not in text]


def test_a_changed_journal_is_noticed() -> None:
    journal = journal_of(next(path for path in HISTORIES if path.name.startswith("night")))
    later = [Event(event.at + 1 if number == 1 else event.at, event.fact) for number, event in enumerate(journal)]
    assert told(later) != told(journal)
