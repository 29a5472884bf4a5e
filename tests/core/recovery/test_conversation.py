"""The life of a job as a table, and conversations as values."""

import pytest

from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.ids import CaseId, ItemId, JobId
from mendflow.core.model.jobs import JobSpec, Outcome
from mendflow.core.recovery.conversation import (
    MESSAGES_FIRST,
    MESSAGES_LAST,
    REPAIR_MESSAGES,
    TRANSITIONS,
    Conversation,
    ConversationMessage,
    ConversationPhase,
    HeldFailure,
    begin,
)
from mendflow.core.recovery.ids import flow_job_id, generation_of, serial_of, submission_job_id

JOB = JobId("c-1/7")
SPEC = JobSpec(item=ItemId("a"), command="true")
FAILED = HeldFailure(
    outcome=Outcome(fault=Fault(name="exit", category=Category.JOB, message="no")), stage="execution", host="n1"
)


def talk(*said: ConversationMessage) -> Conversation:
    return begin(JOB, CaseId("c-1"), said)


@pytest.mark.parametrize(
    ("said", "phase"),
    [
        # FM-7: what may precede a submission
        ((), ConversationPhase.NEW),
        ((ConversationMessage.STAGED,), ConversationPhase.STAGING),
        ((ConversationMessage.STAGED, ConversationMessage.STAGED), ConversationPhase.STAGING),
        ((ConversationMessage.STAGED, ConversationMessage.FAILED), ConversationPhase.FAILED),
        ((ConversationMessage.STAGED, ConversationMessage.SUBMIT), ConversationPhase.SUBMISSION),
        ((ConversationMessage.SUBMIT,), ConversationPhase.SUBMISSION),
        ((ConversationMessage.POST,), ConversationPhase.SUBMISSION),
        ((ConversationMessage.RUN,), ConversationPhase.SUBMISSION),
        ((ConversationMessage.SUBMIT, ConversationMessage.FAILED), ConversationPhase.FAILED),
        # FM-7: what follows it
        ((ConversationMessage.SUBMIT, ConversationMessage.POLL), ConversationPhase.POLLING),
        ((ConversationMessage.SUBMIT, ConversationMessage.POLL, ConversationMessage.POLL), ConversationPhase.POLLING),
        ((ConversationMessage.SUBMIT, ConversationMessage.SUBSCRIBE), ConversationPhase.NOTIFICATION),
        (
            (ConversationMessage.SUBMIT, ConversationMessage.SUBSCRIBE, ConversationMessage.NOTIFY),
            ConversationPhase.NOTIFICATION,
        ),
        ((ConversationMessage.SUBMIT, ConversationMessage.POLL, ConversationMessage.END), ConversationPhase.COMPLETED),
        (
            (
                ConversationMessage.SUBMIT,
                ConversationMessage.SUBSCRIBE,
                ConversationMessage.NOTIFY,
                ConversationMessage.END,
            ),
            ConversationPhase.COMPLETED,
        ),
        ((ConversationMessage.RUN, ConversationMessage.END), ConversationPhase.COMPLETED),
        ((ConversationMessage.SUBMIT, ConversationMessage.POLL, ConversationMessage.FAILED), ConversationPhase.FAILED),
        (
            (ConversationMessage.SUBMIT, ConversationMessage.SUBSCRIBE, ConversationMessage.FAILED),
            ConversationPhase.FAILED,
        ),
        # FM-7 FM-8: the ways back that repairs take
        (
            (ConversationMessage.SUBMIT, ConversationMessage.FAILED, ConversationMessage.RESTAGE),
            ConversationPhase.STAGING,
        ),
        (
            (
                ConversationMessage.SUBMIT,
                ConversationMessage.FAILED,
                ConversationMessage.RESTAGE,
                ConversationMessage.SUBMIT,
            ),
            ConversationPhase.SUBMISSION,
        ),
        (
            (ConversationMessage.SUBMIT, ConversationMessage.FAILED, ConversationMessage.RESUBMIT),
            ConversationPhase.SUBMISSION,
        ),
        (
            (
                ConversationMessage.SUBMIT,
                ConversationMessage.FAILED,
                ConversationMessage.RESUBMIT,
                ConversationMessage.POLL,
            ),
            ConversationPhase.POLLING,
        ),
        (
            (
                ConversationMessage.SUBMIT,
                ConversationMessage.FAILED,
                ConversationMessage.RESUBMIT,
                ConversationMessage.SUBSCRIBE,
            ),
            ConversationPhase.NOTIFICATION,
        ),
        (
            (
                ConversationMessage.SUBMIT,
                ConversationMessage.FAILED,
                ConversationMessage.RESUBMIT,
                ConversationMessage.FAILED,
            ),
            ConversationPhase.FAILED,
        ),
        (
            (ConversationMessage.SUBMIT, ConversationMessage.FAILED, ConversationMessage.REPOLL),
            ConversationPhase.POLLING,
        ),
        (
            (
                ConversationMessage.SUBMIT,
                ConversationMessage.FAILED,
                ConversationMessage.REPOLL,
                ConversationMessage.END,
            ),
            ConversationPhase.COMPLETED,
        ),
        (
            (ConversationMessage.SUBMIT, ConversationMessage.FAILED, ConversationMessage.REREGISTER),
            ConversationPhase.NOTIFICATION,
        ),
        (
            (
                ConversationMessage.SUBMIT,
                ConversationMessage.FAILED,
                ConversationMessage.REREGISTER,
                ConversationMessage.FAILED,
            ),
            ConversationPhase.FAILED,
        ),
        (
            (ConversationMessage.SUBMIT, ConversationMessage.FAILED, ConversationMessage.FORCE_FAIL),
            ConversationPhase.FAILED,
        ),
        (
            (ConversationMessage.SUBMIT, ConversationMessage.FAILED, ConversationMessage.FORCE_COMPLETE),
            ConversationPhase.COMPLETED,
        ),
    ],
)
def test_a_message_moves_the_conversation_as_the_diagram_says(
    said: tuple[ConversationMessage, ...], phase: ConversationPhase
) -> None:
    assert talk(*said).phase is phase


def test_a_failure_can_come_at_every_stage_and_nothing_follows_completion() -> None:
    # FM-7
    live = [
        ConversationPhase.STAGING,
        ConversationPhase.SUBMISSION,
        ConversationPhase.POLLING,
        ConversationPhase.NOTIFICATION,
    ]
    assert all(TRANSITIONS[phase][ConversationMessage.FAILED] is ConversationPhase.FAILED for phase in live)
    assert all(
        talk(ConversationMessage.RUN, ConversationMessage.END, message).phase is ConversationPhase.COMPLETED
        for message in ConversationMessage
    )


def test_out_of_failure_lead_repairs_and_nothing_else() -> None:
    # FM-7
    assert set(TRANSITIONS[ConversationPhase.FAILED]) == REPAIR_MESSAGES - {ConversationMessage.FAILED}


def test_polls_are_noted_once_in_a_row() -> None:
    assert talk(ConversationMessage.SUBMIT, *[ConversationMessage.POLL] * 50).messages == (
        ConversationMessage.SUBMIT,
        ConversationMessage.POLL,
    )


def test_a_long_conversation_keeps_its_beginning_and_its_latest() -> None:
    long = talk(ConversationMessage.SUBMIT, *[ConversationMessage.POLL, ConversationMessage.SUBSCRIBE] * 100)
    assert len(long.messages) == MESSAGES_FIRST + MESSAGES_LAST
    assert long.messages[0] is ConversationMessage.SUBMIT and long.messages[-1] is ConversationMessage.SUBSCRIBE


def test_new_ids_map_to_the_id_that_the_flow_knows() -> None:
    # FM-10
    assert [submission_job_id(JOB, n) for n in (1, 2, 12)] == ["c-1/7", "c-1/7~2", "c-1/7~12"]
    assert {flow_job_id(submission_job_id(JOB, n)) for n in (1, 2, 12)} == {JOB}
    assert [generation_of(submission_job_id(JOB, n)) for n in (1, 2, 12)] == [1, 2, 12]
    assert [serial_of(id) for id in ("c-1/7", "c-1/7~12", "c-1.x1/3~2")] == [7, 7, 3]


def test_a_conversation_counts_over_all_submissions_and_knows_who_failed_it() -> None:
    # FM-10
    failed = talk(ConversationMessage.SUBMIT).with_failure(FAILED, attempts=3, losses=1)
    again = failed.with_resubmission(key="k", cause="e1", spec=SPEC, domain="", level=2, not_before=0, staged=False)
    assert (again.newest, again.generation, again.level, again.held) == ("c-1/7~2", 2, 2, None)
    elsewhere = HeldFailure(outcome=FAILED.outcome, stage="execution", host="n2")
    twice = again.with_failure(elsewhere, attempts=2, losses=0).with_resubmission(
        key="l", cause="e2", spec=SPEC, domain="far", level=1, not_before=5, staged=True
    )
    assert (twice.attempts, twice.losses, twice.reports_sent, twice.hosts) == (5, 1, 2, ("n1", "n2"))
    assert (twice.keys, twice.level, twice.domain) == (("k", "l"), 2, "far")
    assert ConversationMessage.RESTAGE in twice.messages and twice.phase is ConversationPhase.SUBMISSION
