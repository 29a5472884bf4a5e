"""Patterns of conversations and of repairs: data, read, followed, extended."""

import pytest

from mendflow.core.engine import compile_flow
from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.repair import Primitive
from mendflow.core.recovery.conversation import ConversationMessage
from mendflow.core.recovery.patterns import FaultPattern, JobPattern, Patterns, check_pattern, exlet_of, match_pattern
from mendflow.formats.patterns import read_patterns
from mendflow.formats.shipped import default_patterns

HOUSE = default_patterns()


def heard(words: str) -> list[ConversationMessage]:
    return [ConversationMessage(word) for word in words.split()]


@pytest.mark.parametrize(
    ("said", "pattern"),
    [
        # FM-5 FM-11: the four ways to submit, and staging before them, each recognised as soon as it can be
        ("run", "synchronous"),
        ("run end", "synchronous"),
        ("submit", ""),
        ("submit poll", "submit-and-poll"),
        ("submit poll end", "submit-and-poll"),
        ("submit subscribe", "submit-and-notify"),
        ("submit subscribe notify end", "submit-and-notify"),
        ("submit subscribe poll notify end", "submit-and-notify"),
        ("post", "fire-and-forget"),
        ("post subscribe notify end", "fire-and-forget"),
        ("post end", "fire-and-forget"),
        ("staged", "stage-then-submit"),
        ("staged submit subscribe", "stage-then-submit"),
        ("staged staged run end", "stage-then-submit"),
        # what nobody does
        ("poll", ""),
        ("submit end", ""),
        ("run poll", ""),
        ("", ""),
        # FM-11: repairs in between do not hide how the conversation runs
        ("submit subscribe failed re-submit notify end", "submit-and-notify"),
        ("submit poll failed re-submit poll", "submit-and-poll"),
    ],
)
def test_the_pattern_of_a_conversation_is_recognised_from_its_messages(said: str, pattern: str) -> None:
    assert match_pattern(HOUSE, heard(said)) == pattern


@pytest.mark.parametrize(
    ("messages", "fits", "fits_not"),
    [
        ("submit end", ["submit end"], ["submit", "end", "submit end end"]),
        ("submit? end", ["end", "submit end"], ["submit submit end"]),
        ("poll* end", ["end", "poll end"], ["poll"]),
        ("submit (poll | subscribe notify)+ end", ["submit poll subscribe notify end"], ["submit end"]),
        ("(run | submit poll) end", ["run end", "submit poll end"], ["run poll end"]),
        ("((submit)+ poll?)* end", ["end", "submit poll submit end"], ["poll end"]),
    ],
)
def test_the_language_of_patterns(messages: str, fits: list[str], fits_not: list[str]) -> None:
    # FM-11. The second pattern never ends, so that the first is named only when it is fulfilled.
    one = Patterns((JobPattern(name="it", messages=messages), JobPattern(name="any", messages=f"({ANY})* staged")))
    assert [match_pattern(one, heard(words)) for words in fits] == ["it"] * len(fits)
    assert all(match_pattern(one, heard(words)) != "it" for words in fits_not)


ANY = " | ".join(["submit", "post", "run", "poll", "subscribe", "notify", "end"])


@pytest.mark.parametrize(
    ("messages", "says"),
    [
        ("", "lacks a message"),
        ("submit (poll", "lacks a closing bracket"),
        ("submit )", "')' where nothing opens it"),
        ("submit | ", "lacks a message"),
        ("submitt end", "'submitt' in the pattern"),
        ("failed end", "'failed' in the pattern"),
        ("submit 1", "cannot be read"),
        ("* end", "'*' in the pattern"),
        (" ".join(["poll"] * 101), "at most 100"),
    ],
)
def test_a_pattern_that_cannot_be_followed_is_refused_with_the_reason(messages: str, says: str) -> None:
    assert says in check_pattern(messages)


def test_a_pattern_is_read_from_a_file_or_refused_by_its_name() -> None:
    # FM-11
    more = read_patterns("conversations: [{name: chatty, messages: submit poll poll poll end}]")
    assert HOUSE.with_more(more).conversations[-1].name == "chatty"
    with pytest.raises(InvalidRequest, match="chatty: 'pol'"):
        read_patterns("conversations: [{name: chatty, messages: submit pol end}]")
    for wrong in ("convs: []", "- a", "repairs: [{name: x}]", "a: ["):
        with pytest.raises(InvalidRequest, match="these are no patterns"):
            read_patterns(wrong)


def test_a_pattern_takes_the_place_of_one_by_the_same_name() -> None:
    # FM-11
    other = Patterns((JobPattern(name="synchronous", messages="run poll end"),))
    both = HOUSE.with_more(other)
    assert len(both.conversations) == len(HOUSE.conversations)
    assert match_pattern(both, heard("run poll end")) == "synchronous"


def test_every_fault_pattern_is_there_with_a_sentence_and_is_an_exlet() -> None:
    # FM-8 FM-11: re-stage (a) to (d), re-submit, re-poll, re-register, force-fail, force-complete
    ways = {each.settings.get("way") for each in HOUSE.repairs if each.do is Primitive.RESTAGE}
    assert ways == {"same", "parameters", "replica", "target"}
    done = {each.do for each in HOUSE.repairs}
    assert done >= {Primitive.RESUBMIT, Primitive.REPOLL, Primitive.REREGISTER, Primitive.FAIL, Primitive.COMPLETE}
    for repair in HOUSE.repairs:
        assert repair.does.endswith(".")
        compile_flow(exlet_of(repair))


def test_the_stage_of_a_failure_says_which_repairs_make_sense() -> None:
    # FM-11
    stages = {each.name: each.at for each in HOUSE.repairs}
    assert "polling" in stages["re-poll"] and "execution" not in stages["re-poll"]
    assert not stages["force-fail"] or "execution" in stages["force-fail"]
    assert HOUSE.repair("re-poll") == next(each for each in HOUSE.repairs if each.name == "re-poll")
    assert HOUSE.repair("nothing") is None


def test_a_fault_pattern_can_be_anything_that_a_primitive_can() -> None:
    mine = FaultPattern(name="mine", does="Tells.", do=Primitive.NOTIFY, settings={"message": "${{ fault.message }}"})
    flow = exlet_of(mine)
    assert flow.exlet and "context" in flow.inputs
