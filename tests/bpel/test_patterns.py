"""The control-flow patterns that BPEL has words for, and what it refuses or passes by. FM-1"""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.bpel.conftest import Playing
from tests.bpel.documents import (
    SPELL,
    begin,
    buy,
    catch,
    condition,
    correlations,
    flow,
    for_each,
    handlers,
    note,
    process,
    put,
    receive,
    scope,
    sequence,
    sources,
    targets,
    throw,
    traced,
    wait,
)
from tests.bpel.stage import refusal

Spelled = Callable[[str], str]
SUPPRESS = 'suppressJoinFailure="yes"'


def chosen(text: str, *steps: str) -> str:
    return f"<if>{condition(text)}{sequence(*steps)}</if>"


def test_sequence_parallel_split_and_synchronization(spelled: Spelled) -> None:
    assert (
        spelled(process(traced(note("a"), flow(sequence(wait(2), note("b")), sequence(wait(1), note("c"))), note("d"))))
        == "acbd"
    )


def test_exclusive_choice_and_simple_merge(play: Playing) -> None:
    choice = f"<if>{condition('$word.in = 1')}{note('a')}<else>{note('b')}</else></if>"
    stage = play(process(traced(choice, note("c"))))
    assert (stage.spell(1), stage.spell(2)) == ("ac", "bc")


@pytest.mark.parametrize(("word", "says"), [(1, "am"), (2, "bm"), (3, "abm"), (0, "")])
def test_multiple_choice_and_synchronizing_merge(play: Playing, word: int, says: str) -> None:
    branches = [
        note("a", inside=targets("toa") + sources("froma")),
        note("b", inside=targets("tob") + sources("fromb")),
        note("m", inside=targets("froma", "fromb")),
    ]
    split = f"<empty>{sources('toa:$word.in = 1 or $word.in = 3', 'tob:$word.in = 2 or $word.in = 3')}</empty>"
    whole = flow(split, *branches, links="toa tob froma fromb", attributes=SUPPRESS)
    assert play(process(traced(whole))).spell(word) == says


def test_a_discriminator_goes_on_with_the_first(spelled: Spelled) -> None:
    done = "<completionCondition><branches>1</branches></completionCondition>"
    body = sequence("<wait><for>concat('PT', 4 - $n, 'S')</for></wait>", note("d"))
    assert spelled(process(traced(for_each(body, last="3", parallel=True, done=done), note("e")))) == "de"


def test_instances_without_synchronization(play: Playing) -> None:
    stage = play(process(traced(for_each(sequence(buy(1)), last="3", parallel=True))))
    assert stage.spell() == ""
    assert stage.calls == ["1", "1", "1"]


def test_a_milestone_is_open_only_while_it_is(play: Playing) -> None:
    door = (
        "<eventHandlers>"
        '<onEvent partnerLink="desk" operation="tell" messageType="d:newsMessage" variable="news">'
        + correlations("talk no")
        + scope(note("m"))
        + "</onEvent></eventHandlers>"
    )
    text = process(sequence(begin("spell", "talk yes"), scope(door, wait(2)), wait(2), SPELL))
    for seconds, says in ((1, "m"), (3, "")):
        stage = play(text)
        waiting = stage.send("spell", 1)
        stage.pass_by(seconds)
        stage.tell(1)
        assert stage.answer(waiting) == says


def test_interleaved_routing_by_isolated_scopes(spelled: Spelled) -> None:
    each = [
        scope(sequence(put("1", "number"), note(name), wait(1), note(name)), attributes='isolated="yes"')
        for name in "ab"
    ]
    assert spelled(process(traced(flow(*each)))) in ("aabb", "bbaa")


def test_cancelling_an_activity_by_a_message(play: Playing) -> None:
    cancelled = scope(
        handlers(catch("p:stop", note("s"))),
        "<eventHandlers>"
        '<onEvent partnerLink="desk" operation="tell" messageType="d:newsMessage" variable="news">'
        + correlations("talk no")
        + scope(throw("p:stop"))
        + "</onEvent></eventHandlers>",
        sequence(wait(5), note("done")),
    )
    text = process(sequence(begin("spell", "talk yes"), cancelled, SPELL))
    assert play(text).spell() == "done"
    stage = play(text)
    waiting = stage.send("spell", 1)
    stage.tell(1)
    assert stage.answer(waiting) == "s"


def test_cancelling_a_case_by_a_message(play: Playing) -> None:
    text = process(
        sequence(begin("spell", "talk yes"), flow(sequence(receive("tell", "talk no"), "<exit/>"), wait(60)), SPELL)
    )
    stage = play(text)
    waiting = stage.send("spell", 1)
    stage.tell(1)
    assert stage.answer(waiting) == "ended"


def test_implicit_termination_ends_when_nothing_is_left(play: Playing) -> None:
    stage = play(process(sequence(begin("tell"), flow(buy(1), sequence(wait(3), buy(2))))))
    stage.tell()
    stage.pass_by(10)
    assert (stage.statuses, stage.calls) == (["completed"], ["1", "2"])


# Extensions

FOREIGN = 'xmlns:x="urn:x" x:hint="1"'


def test_what_others_added_is_passed_by(spelled: Spelled) -> None:
    extensions = '<extensions><extension namespace="urn:x" mustUnderstand="no"/></extensions>'
    extra = "<x:more xmlns:x='urn:x'>text</x:more><documentation>words</documentation>"
    activity = '<extensionActivity><x:dance xmlns:x="urn:x"/></extensionActivity>'
    operation = '<assign><extensionAssignOperation><x:do xmlns:x="urn:x"/></extensionAssignOperation></assign>'
    text = process(traced(activity, operation, note("a")), attributes=FOREIGN)
    text = text.replace("<import", f"{extensions}<import", 1).replace("<partnerLinks>", f"<partnerLinks>{extra}")
    assert spelled(text) == "a"


def test_what_must_be_understood_and_is_not_is_refused(tmp_path: Path) -> None:
    extensions = '<extensions><extension namespace="urn:x" mustUnderstand="yes"/></extensions>'
    text = process(traced(note("a"))).replace("<import", f"{extensions}<import", 1)
    assert "urn:x" in refusal(tmp_path, text)


def test_an_extension_activity_takes_part_in_links(spelled: Spelled) -> None:
    activity = f'<extensionActivity><x:dance xmlns:x="urn:x">{targets("l")}{sources("m")}</x:dance></extensionActivity>'
    whole = flow(note("b", inside=targets("m")), activity, note("a", inside=sources("l")), links="l m")
    assert spelled(process(traced(whole))) == "ab"
