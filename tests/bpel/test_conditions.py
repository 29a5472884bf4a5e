"""Branches, loops, waits: what their expressions may be, and what happens if they are not. FM-1"""

from collections.abc import Callable

import pytest

from tests.bpel.conftest import Playing
from tests.bpel.documents import (
    assign,
    condition,
    copy,
    flow,
    for_each,
    note,
    note_value,
    process,
    put,
    sequence,
    throw,
    traced,
    wait,
)

Spelled = Callable[[str], str]


def branch(*conditions: str, otherwise: bool = True) -> str:
    """An if that notes the place of the condition that held, or `e`."""
    first, *others = conditions
    more = "".join(f"<elseif>{condition(each)}{note(str(at))}</elseif>" for at, each in enumerate(others, 1))
    last = f"<else>{note('e')}</else>" if otherwise else ""
    return f"<if>{condition(first)}{note('0')}{more}{last}</if>"


@pytest.mark.parametrize(
    ("conditions", "says"),
    [
        (["true()"], "0"),
        (["false()"], "e"),
        (["$word.in = 0"], "0"),
        (["$word.in &gt; 0"], "e"),
        (["false()", "true()"], "1"),
        (["false()", "false()", "$word.in &lt; 1"], "2"),
        (["'text'"], "0"),
        (["''"], "e"),
        (["0"], "e"),
        (["$unset"], "!uninitializedVariable"),
        (["$unset = 1"], "!uninitializedVariable"),
        (["1 +"], "!subLanguageExecutionFault"),
        (["false()", "1 +"], "!subLanguageExecutionFault"),
    ],
)
def test_the_first_condition_that_holds_chooses(spelled: Spelled, conditions: list[str], says: str) -> None:
    assert spelled(process(traced(branch(*conditions)))) == says


def test_nothing_happens_if_no_condition_holds(spelled: Spelled) -> None:
    assert spelled(process(traced(branch("false()", otherwise=False), note("x")))) == "x"


COUNT = put("$number + 1", "number")


@pytest.mark.parametrize(
    ("loop", "says"),
    [
        (f"<while>{condition('$number &lt; 3')}{sequence(note('x'), COUNT)}</while>", "xxx"),
        (f"<while>{condition('$number &gt; 3')}{sequence(note('x'), COUNT)}</while>", ""),
        (f"<repeatUntil>{sequence(note('x'), COUNT)}{condition('$number &gt; 2')}</repeatUntil>", "xxx"),
        (f"<repeatUntil>{sequence(note('x'), COUNT)}{condition('$number = 3')}</repeatUntil>", "xxx"),
        (f"<repeatUntil>{note('x')}{condition('true()')}</repeatUntil>", "x"),
        (f"<while>{condition('(')}<empty/></while>", "!subLanguageExecutionFault"),
        (f"<while>{condition('$unset')}<empty/></while>", "!uninitializedVariable"),
        (f"<repeatUntil><empty/>{condition('none')}</repeatUntil>", "!subLanguageExecutionFault"),
        (
            f"<while>{condition('$number &lt; 2')}"
            + sequence(f"<repeatUntil>{note('y')}{condition('true()')}</repeatUntil>", COUNT)
            + "</while>",
            "yy",
        ),
        (f"<while>{condition('$number &lt; 2')}{flow(note('x'), COUNT)}</while>", "xx"),
    ],
)
def test_loops_end_when_they_should(spelled: Spelled, loop: str, says: str) -> None:
    assert spelled(process(traced(put("0", "number"), loop))) == says


@pytest.mark.parametrize(
    ("what", "seconds"),
    [
        ("<for>'PT2S'</for>", 2),
        ("<for>'P0Y0M0DT0H0M1.5S'</for>", 1.5),
        ("<for>concat('PT', $word.in + 3, 'S')</for>", 3),
        ("<for>'P1D'</for>", 86_400),
        ("<for>'PT0S'</for>", 0),
        ("<for>'-PT5S'</for>", 0),
        ("<until>'2023-11-14T22:13:30Z'</until>", 10),
        ("<until>'2023-11-14T23:13:30+01:00'</until>", 10),
        ("<until>'2000-01-01T00:00:00'</until>", 0),
        ("<until>'2000-01-01'</until>", 0),
        ("<until>'2023-11-15Z'</until>", 6400),
    ],
)
def test_a_wait_ends_when_it_should(play: Playing, what: str, seconds: float) -> None:
    stage = play(process(traced(f"<wait>{what}</wait>")))
    before = stage.now
    assert stage.spell() == ""
    assert stage.now - before == seconds * 1000


@pytest.mark.parametrize(
    "what",
    [
        "<for>'soon'</for>",
        "<for>5</for>",
        "<for>''</for>",
        "<for>'P'</for>",
        "<until>'tomorrow'</until>",
        "<until>1</until>",
        "<for>'2011-01-01'</for>",
        "<until>'PT1S'</until>",
    ],
)
def test_a_wait_for_what_is_no_time_is_a_fault(spelled: Spelled, what: str) -> None:
    assert spelled(process(traced(f"<wait>{what}</wait>"))) == "!invalidExpressionValue"


def counted(start: str, last: str, parallel: bool = False) -> str:
    return for_each(note_value("$n"), start=start, last=last, parallel=parallel)


@pytest.mark.parametrize(
    ("loop", "says"),
    [
        (counted("1", "3"), "123"),
        (counted("0", "0"), "0"),
        (counted("3", "1"), ""),
        (counted("$word.in", "$word.in + 2"), "012"),
        (counted("1", "3", parallel=True), "123"),
        (counted("-1", "3"), "!invalidExpressionValue"),
        (counted("1", "-3"), "!invalidExpressionValue"),
        (counted("1.5", "3"), "!invalidExpressionValue"),
        (counted("'a'", "3"), "!invalidExpressionValue"),
        (counted("1", "'z'"), "!invalidExpressionValue"),
        (counted("1", "4294967296"), "!invalidExpressionValue"),
        (counted("4294967296", "1"), "!invalidExpressionValue"),
        (counted("4294967295", "4294967295"), "4294967295"),
        (counted("4294967294", "4294967295"), "42949672944294967295"),
        (counted("true()", "3"), "123"),
        (counted("$unset", "3"), "!uninitializedVariable"),
        (counted("(", "3"), "!subLanguageExecutionFault"),
        (counted("1", "3", parallel=True).replace("1</start", "-1</start"), "!invalidExpressionValue"),
    ],
)
def test_a_for_each_counts_from_its_start_to_its_end(spelled: Spelled, loop: str, says: str) -> None:
    assert spelled(process(traced(loop))) == says


def branches(what: str, *, only: bool = False) -> str:
    counted = ' successfulBranchesOnly="yes"' if only else ""
    return f"<completionCondition><branches{counted}>{what}</branches></completionCondition>"


CAUGHT_TURN = "<faultHandlers><catchAll><sequence>" + note("f") + "</sequence></catchAll></faultHandlers>"


def turns(body: str, last: str, done: str, *, parallel: bool = False) -> str:
    return for_each(body, last=last, done=done, parallel=parallel)


def test_a_for_each_is_over_when_enough_turns_are(spelled: Spelled) -> None:
    assert spelled(process(traced(turns(note_value("$n"), "5", branches("2"))))) == "12"
    assert spelled(process(traced(turns(note_value("$n"), "5", branches("5"))))) == "12345"
    assert spelled(process(traced(turns(note_value("$n"), "5", branches("0"))))) == "1", "it is asked after each turn"


@pytest.mark.parametrize(
    ("done", "says"),
    [
        (branches("3"), "!invalidBranchCondition"),
        (branches("-1"), "!invalidExpressionValue"),
        (branches("1.5"), "!invalidExpressionValue"),
        (branches("'x'"), "!invalidExpressionValue"),
        (branches("$unset"), "!uninitializedVariable"),
        (branches("3", only=True), "!invalidBranchCondition"),
    ],
)
def test_a_number_of_turns_that_cannot_be_is_a_fault(spelled: Spelled, done: str, says: str) -> None:
    assert spelled(process(traced(turns(note_value("$n"), "2", done)))) == says


def test_turns_that_failed_count_unless_only_successes_do(spelled: Spelled) -> None:
    failing = CAUGHT_TURN + sequence(note_value("$n"), f"<if>{condition('$n &lt; 3')}{throw('p:no')}</if>")
    assert spelled(process(traced(turns(failing, "5", branches("2"))))) == "1f2f"
    assert spelled(process(traced(turns(failing, "5", branches("2", only=True))))) == "1f2f34"
    assert spelled(process(traced(turns(failing, "3", branches("2", only=True))))) == "!completionConditionFailure"


def test_parallel_turns_that_are_no_longer_needed_are_ended(spelled: Spelled) -> None:
    body = sequence("<wait><for>concat('PT', $n, 'S')</for></wait>", note_value("$n"))
    assert spelled(process(traced(turns(body, "4", branches("2"), parallel=True)))) == "12"


def test_a_counter_that_is_written_changes_its_turn_alone(spelled: Spelled) -> None:
    body = sequence(assign(copy("$n + 10", '<to variable="n"/>')), note_value("$n"))
    assert spelled(process(traced(turns(body, "3", "")))) == "111213"


def test_parallel_turns_have_variables_of_their_own(spelled: Spelled) -> None:
    own = '<variables><variable name="mine" type="xsd:int"/></variables>'
    body = own + sequence(assign(copy("$n", "$mine")), wait(1), note_value("$mine"))
    assert spelled(process(traced(turns(body, "3", "", parallel=True)))) == "123"


def test_loops_in_loops_have_counters_of_their_own(spelled: Spelled) -> None:
    inner = for_each(note_value("$n"), last="2")
    assert spelled(process(traced(turns(sequence(inner, note_value("$n * 10")), "2", "")))) == "12101220"
