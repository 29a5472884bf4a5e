"""The life of a job as a table, and conversations as values."""

import pytest

from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.ids import CaseId, ItemId, JobId
from mendflow.core.model.jobs import JobSpec, Outcome
from mendflow.core.recovery.conversation import (
    MENDING,
    SAID_FIRST,
    SAID_LAST,
    TRANSITIONS,
    Conversation,
    Held,
    Message,
    Phase,
    begin,
)
from mendflow.core.recovery.ids import generation_of, known_id, real_id, serial_of

JOB = JobId("c-1/7")
SPEC = JobSpec(item=ItemId("a"), command="true")
FAILED = Held(
    outcome=Outcome(fault=Fault(name="exit", category=Category.JOB, message="no")), stage="execution", host="n1"
)


def talk(*said: Message) -> Conversation:
    return begin(JOB, CaseId("c-1"), said)


@pytest.mark.parametrize(
    ("said", "phase"),
    [
        # FM-7: what may precede a submission
        ((), Phase.NEW),
        ((Message.STAGED,), Phase.STAGING),
        ((Message.STAGED, Message.STAGED), Phase.STAGING),
        ((Message.STAGED, Message.FAILED), Phase.FAILED),
        ((Message.STAGED, Message.SUBMIT), Phase.SUBMISSION),
        ((Message.SUBMIT,), Phase.SUBMISSION),
        ((Message.POST,), Phase.SUBMISSION),
        ((Message.RUN,), Phase.SUBMISSION),
        ((Message.SUBMIT, Message.FAILED), Phase.FAILED),
        # FM-7: what follows it
        ((Message.SUBMIT, Message.POLL), Phase.POLLING),
        ((Message.SUBMIT, Message.POLL, Message.POLL), Phase.POLLING),
        ((Message.SUBMIT, Message.SUBSCRIBE), Phase.NOTIFICATION),
        ((Message.SUBMIT, Message.SUBSCRIBE, Message.NOTIFY), Phase.NOTIFICATION),
        ((Message.SUBMIT, Message.POLL, Message.END), Phase.COMPLETED),
        ((Message.SUBMIT, Message.SUBSCRIBE, Message.NOTIFY, Message.END), Phase.COMPLETED),
        ((Message.RUN, Message.END), Phase.COMPLETED),
        ((Message.SUBMIT, Message.POLL, Message.FAILED), Phase.FAILED),
        ((Message.SUBMIT, Message.SUBSCRIBE, Message.FAILED), Phase.FAILED),
        # FM-7 FM-8: the ways back that repairs take
        ((Message.SUBMIT, Message.FAILED, Message.RESTAGE), Phase.STAGING),
        ((Message.SUBMIT, Message.FAILED, Message.RESTAGE, Message.SUBMIT), Phase.SUBMISSION),
        ((Message.SUBMIT, Message.FAILED, Message.RESUBMIT), Phase.SUBMISSION),
        ((Message.SUBMIT, Message.FAILED, Message.RESUBMIT, Message.POLL), Phase.POLLING),
        ((Message.SUBMIT, Message.FAILED, Message.RESUBMIT, Message.SUBSCRIBE), Phase.NOTIFICATION),
        ((Message.SUBMIT, Message.FAILED, Message.RESUBMIT, Message.FAILED), Phase.FAILED),
        ((Message.SUBMIT, Message.FAILED, Message.REPOLL), Phase.POLLING),
        ((Message.SUBMIT, Message.FAILED, Message.REPOLL, Message.END), Phase.COMPLETED),
        ((Message.SUBMIT, Message.FAILED, Message.REREGISTER), Phase.NOTIFICATION),
        ((Message.SUBMIT, Message.FAILED, Message.REREGISTER, Message.FAILED), Phase.FAILED),
        ((Message.SUBMIT, Message.FAILED, Message.FORCE_FAIL), Phase.FAILED),
        ((Message.SUBMIT, Message.FAILED, Message.FORCE_COMPLETE), Phase.COMPLETED),
    ],
)
def test_a_message_moves_the_conversation_as_the_diagram_says(said: tuple[Message, ...], phase: Phase) -> None:
    assert talk(*said).phase is phase


def test_a_failure_can_come_at_every_stage_and_nothing_follows_completion() -> None:
    # FM-7
    live = [Phase.STAGING, Phase.SUBMISSION, Phase.POLLING, Phase.NOTIFICATION]
    assert all(TRANSITIONS[phase][Message.FAILED] is Phase.FAILED for phase in live)
    assert all(talk(Message.RUN, Message.END, message).phase is Phase.COMPLETED for message in Message)


def test_out_of_failure_lead_repairs_and_nothing_else() -> None:
    # FM-7
    assert set(TRANSITIONS[Phase.FAILED]) == MENDING - {Message.FAILED}


def test_polls_are_noted_once_in_a_row() -> None:
    assert talk(Message.SUBMIT, *[Message.POLL] * 50).said == (Message.SUBMIT, Message.POLL)


def test_a_long_conversation_keeps_its_beginning_and_its_latest() -> None:
    long = talk(Message.SUBMIT, *[Message.POLL, Message.SUBSCRIBE] * 100)
    assert len(long.said) == SAID_FIRST + SAID_LAST
    assert long.said[0] is Message.SUBMIT and long.said[-1] is Message.SUBSCRIBE


def test_new_ids_map_to_the_id_that_the_flow_knows() -> None:
    # FM-10
    assert [real_id(JOB, n) for n in (1, 2, 12)] == ["c-1/7", "c-1/7~2", "c-1/7~12"]
    assert {known_id(real_id(JOB, n)) for n in (1, 2, 12)} == {JOB}
    assert [generation_of(real_id(JOB, n)) for n in (1, 2, 12)] == [1, 2, 12]
    assert [serial_of(id) for id in ("c-1/7", "c-1/7~12", "c-1.x1/3~2")] == [7, 7, 3]


def test_a_conversation_counts_over_all_submissions_and_knows_who_failed_it() -> None:
    # FM-10
    failed = talk(Message.SUBMIT).fail(FAILED, attempts=3, losses=1)
    again = failed.send_again(key="k", cause="e1", spec=SPEC, domain="", level=2, not_before=0, staged=False)
    assert (again.newest, again.generation, again.level, again.held) == ("c-1/7~2", 2, 2, None)
    elsewhere = Held(outcome=FAILED.outcome, stage="execution", host="n2")
    twice = again.fail(elsewhere, attempts=2, losses=0).send_again(
        key="l", cause="e2", spec=SPEC, domain="far", level=1, not_before=5, staged=True
    )
    assert (twice.attempts, twice.losses, twice.told, twice.hosts) == (5, 1, 2, ("n1", "n2"))
    assert (twice.keys, twice.level, twice.domain) == (("k", "l"), 2, "far")
    assert Message.RESTAGE in twice.said and twice.phase is Phase.SUBMISSION
