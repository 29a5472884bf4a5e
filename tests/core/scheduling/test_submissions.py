"""The life of a site's submissions: written first, known by name, and never a flood."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendflow.core.model.sites import (
    HOUR_MS,
    BatchJobStatus,
    PilotSubmission,
    Purpose,
    Site,
    SiteDocument,
    SubmissionState,
    SubmitAccepted,
    SubmitRejected,
    SubmitResult,
    SubmitSkipped,
    SubmitUncertain,
)
from mendflow.core.scheduling import submissions
from mendflow.core.scheduling.submissions import (
    SiteObservation,
    apply_answers,
    apply_observation,
    close_submission,
    reserve,
    submission_allowance,
)

T0 = 10**12
SITE = Site(name="t0", submissions_per_hour=20, failures_max=3, lost_ms=60_000, start_ms=600_000)
EMPTY = SiteDocument(site=SITE, mark="abc")


def sent(document: SiteDocument = EMPTY, count: int = 1, now: int = T0) -> tuple[SiteDocument, list[str]]:
    purposes: list[Purpose] = ["jobs"] * count
    written, new = reserve(document, purposes, now=now, by="one")
    return written, [each.name for each in new]


def acknowledged(document: SiteDocument, names: list[str], now: int = T0) -> SiteDocument:
    return apply_answers(document, {name: SubmitAccepted(str(place)) for place, name in enumerate(names)}, now)


def seen(
    found: Mapping[str, BatchJobStatus] | None, *, now: int, heard: Mapping[str, str] | None = None, since: int = T0
) -> SiteObservation:
    return SiteObservation(
        found=found, heard=heard or {}, now=now, silent_ms=30_000, watched_since=since, why="it is down"
    )


def only(document: SiteDocument) -> PilotSubmission:
    [one] = document.open.values()
    return one


def ends(document: SiteDocument) -> list[str]:
    return [each.how for each in document.endings]


def test_a_submission_is_written_and_paid_for_before_anybody_hears_of_it() -> None:  # PJ-8
    document, names = sent(count=3)
    assert list(document.open) == names == [f"mendflow-t0-{number}-abc" for number in (1, 2, 3)]
    assert all(each.state is SubmissionState.PLANNED for each in document.open.values())
    assert submissions.left_this_hour(document, T0) == 17
    assert submissions.left_this_hour(document, T0 + HOUR_MS) == 20


def test_a_name_is_of_one_site_and_of_no_other_of_its_name() -> None:
    one = SiteDocument(site=SITE, mark="abc", serial=9)
    other = SiteDocument(site=SITE, mark="xyz", serial=9)
    longer = SiteDocument(site=Site(name="t0-1"), mark="abc", serial=9)
    assert submissions.is_ours(one, "mendflow-t0-1-abc") and not submissions.is_ours(other, "mendflow-t0-1-abc")
    assert submissions.is_ours(longer, "mendflow-t0-1-7-abc") and not submissions.is_ours(one, "mendflow-t0-1-7-abc")
    for made_up in ("mendflow-t0-10-abc", "mendflow-t0-x-abc", "mendflow-t0--abc", f"mendflow-t0-{'9' * 5000}-abc"):
        assert not submissions.is_ours(one, made_up)
        assert submissions.record_working_pilot(one, made_up, "p1", T0) == one, "whoever says so is not one of ours"
    assert submissions.site_of("mendflow-t0-1-7-abc") == "t0-1" and submissions.site_of("somebody") == ""


def test_a_pilot_is_known_by_the_secret_that_it_was_given() -> None:  # SE-2
    document, [one, two] = sent(submissions.with_key(EMPTY, "key"), 2)
    secret = submissions.secret_of(document, one)
    assert submissions.is_pilot_of(document, one, secret) and not submissions.is_pilot_of(document, two, secret)
    assert not submissions.is_pilot_of(document, one, "") and not submissions.is_pilot_of(EMPTY, one, secret)
    coming = "mendflow-t0-3-abc"
    assert not submissions.is_pilot_of(document, coming, submissions.secret_of(document, coming)), "not submitted yet"


def test_pilots_of_before_there_were_secrets_are_known_by_their_names_until_they_end() -> None:
    document, [old] = sent()
    assert submissions.is_pilot_of(document, old, "")
    document, [new] = sent(submissions.with_key(document, "key"))
    assert submissions.is_pilot_of(document, old, "") and not submissions.is_pilot_of(document, new, "")
    document = close_submission(document, old, "lost", now=T0)
    assert not submissions.is_pilot_of(document, old, "")


def test_a_submission_goes_from_the_queue_to_work_and_home() -> None:
    document, names = sent()
    [name] = names
    document = acknowledged(document, names)
    assert only(document).state is SubmissionState.SUBMITTED and only(document).native == "0"
    for state, expected in (("queued", SubmissionState.QUEUED), ("running", SubmissionState.RUNNING)):
        document = apply_observation(document, seen({name: BatchJobStatus(state, "7")}, now=T0 + 1)).document  # type: ignore[arg-type]  # a literal in a loop
        assert only(document).state is expected and only(document).native == "7"
    document = apply_observation(
        document, seen({name: BatchJobStatus("running")}, now=T0 + 2, heard={name: "p1"})
    ).document
    assert only(document).state is SubmissionState.WORKING and only(document).pilot == "p1"
    document = close_submission(document, name, "left", now=T0 + 3)
    assert not document.open and ends(document) == ["left"] and document.failures == 0


def test_an_acknowledged_submission_that_the_batch_system_forgets_is_noticed() -> None:  # PJ-8
    document, names = sent()
    document = acknowledged(document, names)
    document = apply_observation(document, seen({}, now=T0 + 1_000)).document
    assert document.open, "a batch system may be slow to show what it has taken"
    document = apply_observation(document, seen({}, now=T0 + 61_000)).document
    assert ends(document) == ["lost"] and document.failures == 1


def test_a_number_that_now_belongs_to_another_name_says_nothing() -> None:
    document, names = sent(count=2)
    document = acknowledged(document, names)
    first, second = names
    found = {second: BatchJobStatus("running", "0")}  # the number that the first was given
    document = apply_observation(
        apply_observation(document, seen(found, now=T0 + 1_000)).document, seen(found, now=T0 + 61_000)
    ).document
    assert [each.name for each in document.endings] == [first] and list(document.open) == [second]


def test_what_was_given_up_for_lost_counts_again_when_it_is_there_after_all() -> None:
    document, names = sent()
    document = apply_observation(
        apply_observation(document, seen({}, now=T0)).document, seen({}, now=T0 + 60_000)
    ).document
    assert not document.open
    queued = apply_observation(document, seen({names[0]: BatchJobStatus("queued", "9")}, now=T0 + 70_000)).document
    assert only(queued).state is SubmissionState.QUEUED
    heard = apply_observation(document, seen({}, now=T0 + 70_000, heard={names[0]: "p1"})).document
    assert only(heard).state is SubmissionState.WORKING and heard.failures == 0


def test_what_has_left_does_not_come_back_while_the_batch_system_still_shows_it() -> None:
    document, names = sent()
    document = submissions.record_working_pilot(document, names[0], "p1", T0)
    document = close_submission(document, names[0], "left", now=T0 + 1)
    document = apply_observation(
        document, seen({names[0]: BatchJobStatus("running")}, now=T0 + 2, heard={names[0]: "p1"})
    ).document
    assert not document.open and document.failures == 0


def test_a_batch_system_that_does_not_answer_proves_nothing_and_gets_nothing() -> None:  # PJ-8
    document, names = sent()
    document = acknowledged(document, names)
    for later in range(0, HOUR_MS, 60_000):
        document = apply_observation(document, seen(None, now=T0 + later)).document
    assert list(document.open) == names and document.unheard_since == T0
    assert submission_allowance(document, T0 + HOUR_MS)[0] == 0
    document = apply_observation(document, seen({names[0]: BatchJobStatus("queued")}, now=T0 + HOUR_MS)).document
    assert submission_allowance(document, T0 + HOUR_MS)[0] > 0 and document.trouble == ""


def test_a_refused_submission_makes_the_next_one_wait_longer_each_time_until_the_site_is_paused() -> None:
    document, now, waits = EMPTY, T0, []
    while document.paused is None:
        document, names = sent(document, now=now)
        document = apply_answers(document, {names[0]: SubmitRejected("no such queue")}, now)
        waits.append(document.not_before - now)
        assert submission_allowance(document, now)[0] == 0
        now = document.not_before
    assert waits == sorted(set(waits)) and len(waits) == SITE.failures_max
    assert "no such queue" in document.paused.why and document.paused.by == ""
    assert submission_allowance(document, now + HOUR_MS)[0] == 0
    assert submission_allowance(submissions.resume(document), now)[0] > 0


def test_after_a_failure_pilots_are_sent_one_at_a_time_until_one_has_worked() -> None:
    document, names = sent(count=3)
    document = apply_answers(
        document, {names[0]: SubmitUncertain("timed out"), names[1]: SubmitSkipped(), names[2]: SubmitSkipped()}, T0
    )
    assert list(document.open) == names[:1] and submissions.left_this_hour(document, T0) == 19
    assert submission_allowance(document, document.not_before)[0] == 1
    assert submission_allowance(submissions.record_working_pilot(document, names[0], "p1", T0), T0)[0] > 1


def test_many_that_fail_at_one_look_are_one_failure() -> None:
    document, names = sent(count=10)
    document = acknowledged(document, names)
    found = {name: BatchJobStatus("ended", why="node failure") for name in names}
    document = apply_observation(document, seen(found, now=T0 + 1)).document
    assert ends(document) == ["ended"] * 10 and document.failures == 1 and document.paused is None


def test_a_pilot_that_cannot_work_counts_and_its_reason_is_kept() -> None:  # PJ-2
    document, names = sent(count=3)
    for place, name in enumerate(names):
        document = close_submission(document, name, "unfit", now=T0 + place, why="no program singularity")
    assert document.paused is not None and "singularity" in document.paused.why
    assert {each.why for each in document.endings} == {"no program singularity"}


def test_a_pilot_that_was_started_and_is_never_heard_is_taken_back() -> None:
    document, names = sent()
    found = {names[0]: BatchJobStatus("running")}
    document = apply_observation(document, seen(found, now=T0)).document
    after = apply_observation(document, seen(found, now=T0 + SITE.start_ms))
    assert after.cancel == tuple(names) and ends(after.document) == ["silent"]


def test_a_pilot_that_worked_and_is_silent_for_a_lease_is_gone_but_not_before_anybody_could_hear_it() -> None:
    document, names = sent()
    document = submissions.record_working_pilot(document, names[0], "p1", T0)
    missed = apply_observation(document, seen({}, now=T0 + 1)).document
    assert only(missed).missed_at == T0 + 1
    restarted = apply_observation(missed, seen({}, now=T0 + 40_000, since=T0 + 39_000)).document
    assert restarted.open, "the server was started a moment ago"
    gone = apply_observation(missed, seen({}, now=T0 + 40_000)).document
    assert ends(gone) == ["gone"] and gone.failures == 0
    assert not only(apply_observation(missed, seen({}, now=T0 + 2, heard={names[0]: "p1"})).document).missed_at


def test_a_pilot_that_was_requeued_and_comes_again_is_the_same_submission() -> None:
    document, names = sent()
    document = submissions.record_working_pilot(document, names[0], "p1", T0)
    for later in (1, 60_000, 120_000):
        document = apply_observation(document, seen({names[0]: BatchJobStatus("queued")}, now=T0 + later)).document
    assert list(document.open) == names
    document = apply_observation(
        document, seen({names[0]: BatchJobStatus("running")}, now=T0 + 130_000, heard={names[0]: "p2"})
    ).document
    assert only(document).pilot == "p2"


def test_a_paused_site_takes_back_what_has_not_begun_and_that_is_no_failure() -> None:
    document, names = sent(count=2)
    document = submissions.record_working_pilot(document, names[0], "p1", T0)
    document = submissions.pause(document, "by ann", now=T0, by="ann")
    found = {names[0]: BatchJobStatus("running"), names[1]: BatchJobStatus("queued")}
    after = apply_observation(document, seen(found, now=T0 + 1, heard={names[0]: "p1"}))
    assert after.cancel == (names[1],)
    again = apply_observation(after.document, seen(found, now=T0 + 2, heard={names[0]: "p1"}))
    assert again.cancel == (), "it was told already"
    assert apply_observation(after.document, seen(found, now=T0 + 61_000, heard={names[0]: "p1"})).cancel == (names[1],)
    found[names[1]] = BatchJobStatus("ended")
    over = apply_observation(after.document, seen(found, now=T0 + 3, heard={names[0]: "p1"})).document
    assert ends(over) == ["withdrawn"] and over.failures == 0


answers = st.sampled_from([SubmitAccepted("1"), SubmitRejected("no"), SubmitUncertain("time"), SubmitSkipped()])
states = st.sampled_from(["queued", "running", "ended", "nothing"])
step = st.fixed_dictionaries(
    {
        "after_ms": st.sampled_from([1, 5_000, 61_000, 700_000]),
        "want": st.integers(0, 60),
        "answers": st.lists(answers, min_size=60, max_size=60),
        "found": st.lists(states, min_size=200, max_size=200),
        "away": st.booleans(),
        "heard": st.integers(0, 3),
        "resume": st.booleans(),
    }
)


@pytest.mark.full
@given(steps=st.lists(step, max_size=25))
def test_no_batch_system_however_it_lies_costs_more_than_the_budget(steps: list[dict[str, object]]) -> None:  # PJ-8
    """It answers errors, hangs, forgets what it took, shows what it never had, and lets few pilots come."""
    document, now = EMPTY, T0
    asked: list[int] = []  # the moments at which something was really submitted
    names: list[str] = []
    for each in steps:
        now += int(str(each["after_ms"]))
        told, heard = each["found"], names[: int(str(each["heard"]))]
        assert isinstance(told, list)
        found = {
            name: BatchJobStatus(state)
            for name, state in zip(reversed(names), told, strict=False)
            if state != "nothing"
        }
        if each["resume"]:
            document = submissions.resume(document)
        looked = apply_observation(
            document, seen(None if each["away"] else found, now=now, heard={name: "p" for name in heard})
        )
        document = looked.document
        most = min(int(str(each["want"])), submission_allowance(document, now)[0])
        document, new = sent(document, most, now)
        given_back = each["answers"]
        assert isinstance(given_back, list)
        said: dict[str, SubmitResult] = dict(zip(new, given_back, strict=False))
        asked += [now for answer in said.values() if not isinstance(answer, SubmitSkipped)]
        names += new
        document = apply_answers(document, said, now)
        assert sum(at > now - HOUR_MS for at in asked) <= SITE.submissions_per_hour
        assert all(name in names for name in document.open)
        assert len(set(names)) == len(names), "a name is used once"
