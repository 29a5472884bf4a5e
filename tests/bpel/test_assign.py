"""Copies of every form. FM-1"""

from collections.abc import Callable

import pytest

from tests.bpel.documents import assign, copy, note_value, process, put, traced

Spelled = Callable[[str], str]

LITERAL = '<from><literal><d:order id="7"><d:item>a</d:item><d:item>b</d:item></d:order></literal></from>'
ORDER = assign(copy(LITERAL, '<to variable="order"/>'))


@pytest.mark.parametrize(
    ("what", "to", "shown", "says"),
    [
        # expressions of every kind into simple types and elements
        ("'2011-12-24'", '<to variable="spelling" part="out"/>', "$spelling.out", "2011-12-24"),
        ("1.5", '<to variable="spelling" part="out"/>', "$spelling.out", "1.5"),
        ("1 div 4", '<to variable="spelling" part="out"/>', "$spelling.out", "0.25"),
        ("true()", '<to variable="spelling" part="out"/>', "$spelling.out", "true"),
        ("2 + 3", '<to variable="number"/>', "$number", "5"),
        ("2 + 3", "$number", "$number", "5"),
        ("2 + 3", "$answer.out", "$answer.out", "5"),
        ("$word.in + 1", '<to variable="answer" part="out"/>', "$answer.out", "1"),
        # literals of texts and elements
        ("<from><literal>11</literal></from>", '<to variable="answer" part="out"/>', "$answer.out", "11"),
        ("<from><literal>11</literal></from>", '<to variable="number"/>', "$number", "11"),
        ("<from><literal/></from>", '<to variable="spelling" part="out"/>', "concat('[', $spelling.out, ']')", "[]"),
        (
            "<from><literal><d:answer>3</d:answer></literal></from>",
            '<to variable="answer" part="out"/>',
            "$answer.out",
            "3",
        ),
        (LITERAL, '<to variable="order"/>', "count($order/d:item)", "2"),
        (LITERAL, '<to variable="order"/>', "$order/@id", "7"),
        # variables, parts and queries
        ('<from variable="word" part="in"/>', '<to variable="answer" part="out"/>', "$answer.out", "0"),
        ('<from variable="word" part="in"/>', '<to variable="number"/>', "$number", "0"),
        (
            '<from variable="word" part="in"><query>.</query></from>',
            '<to variable="number"/>',
            "$number",
            "0",
        ),
        (
            '<from variable="word"  property="d:id"/>',
            '<to variable="number"/>',
            "$number",
            "0",
        ),
        ('<from variable="word" part="in"/>', '<to variable="question" property="d:id"/>', "$question.in", "0"),
        ("bpel:getVariableProperty('word', 'd:id') + 4", '<to variable="number"/>', "$number", "4"),
    ],
)
def test_copies_of_whole_values(spelled: Spelled, what: str, to: str, shown: str, says: str) -> None:
    step = assign(copy(what, to))
    assert spelled(process(traced(step, note_value(shown)))) == says


@pytest.mark.parametrize(
    ("what", "to", "shown", "says"),
    [
        ('<from variable="order"><query>d:item[2]</query></from>', '<to variable="number"/>', "$number", "b"),
        (
            '<from variable="order"><query>d:item[2]</query></from>',
            '<to variable="spelling" part="out"/>',
            "$spelling.out",
            "b",
        ),
        (
            "'c'",
            '<to variable="order"><query>d:item[1]</query></to>',
            "concat($order/d:item[1], $order/d:item[2])",
            "cb",
        ),
        ("'c'", "$order/d:item[2]", "concat($order/d:item[1], $order/d:item[2])", "ac"),
        ("8", "$order/@id", "$order/@id", "8"),
        ("'c'", "$order/d:item[1]/text()", "$order/d:item[1]", "c"),
        ("9", '<to variable="order" property="d:id"/>', "$order/@id", "9"),
        ('<from variable="order" property="d:id"/>', '<to variable="number"/>', "$number", "7"),
        (
            '<from variable="order"/>',
            '<to variable="offer"/>',
            "concat(local-name($offer), ':', count($offer/*), $offer/@id)",
            "offer:27",
        ),
        ("$order", "$offer", "concat(local-name($offer), count($offer/d:item))", "offer2"),
        ('<from variable="order"/>', '<to variable="whole"/>', "count($whole/d:item)", "2"),
        ('<from variable="order"><query>d:item[3]</query></from>', '<to variable="number"/>', "1", "!selectionFailure"),
        ('<from variable="order"><query>d:item</query></from>', '<to variable="number"/>', "1", "!selectionFailure"),
        ("$order/d:item", '<to variable="spelling" part="out"/>', "1", "!selectionFailure"),
        ("$order/d:none", '<to variable="spelling" part="out"/>', "1", "!selectionFailure"),
        ("1", "$order/d:item", "1", "!selectionFailure"),
        ("1", "$order/d:none", "1", "!selectionFailure"),
        ("1", "$order/d:item[", "1", "!subLanguageExecutionFault"),
        ("$unset", '<to variable="number"/>', "1", "!uninitializedVariable"),
        ('<from variable="unset"/>', '<to variable="number"/>', "1", "!uninitializedVariable"),
        ('<from variable="question"/>', '<to variable="question"/>', "1", "!uninitializedVariable"),
        ('<from variable="question" part="in"/>', '<to variable="number"/>', "1", "!uninitializedVariable"),
        ("$question.in", '<to variable="number"/>', "1", "!uninitializedVariable"),
        ("1", "$offer/@id", "1", "!selectionFailure"),
        ("count(", '<to variable="number"/>', "1", "!subLanguageExecutionFault"),
        ("unknown()", '<to variable="number"/>', "1", "!subLanguageExecutionFault"),
    ],
)
def test_copies_of_what_is_selected(spelled: Spelled, what: str, to: str, shown: str, says: str) -> None:
    assert spelled(process(traced(ORDER, assign(copy(what, to)), note_value(shown)))) == says


@pytest.mark.parametrize(("keep", "name"), [("no", "offer"), ("yes", "order")])
def test_the_name_of_an_element_goes_along_only_if_it_is_kept(spelled: Spelled, keep: str, name: str) -> None:
    first = assign(copy("<from><literal><d:offer/></literal></from>", '<to variable="offer"/>'))
    step = assign(copy("$order", "$offer", f'keepSrcElementName="{keep}"'))
    outcome = spelled(process(traced(ORDER, first, step, note_value("local-name($offer)"))))
    assert outcome == (name if keep == "no" else "!mismatchedAssignmentFailure")


def test_what_is_missing_may_be_missing(spelled: Spelled) -> None:
    ignoring = 'ignoreMissingFromData="yes"'
    steps = [
        assign(copy("$order/d:none", "$order/d:item[1]", ignoring)),
        note_value("$order/d:item[1]"),
    ]
    assert spelled(process(traced(ORDER, *steps))) == "a"
    several = assign(copy("$order/d:item", "$order/d:item[1]", ignoring))
    assert spelled(process(traced(ORDER, several))) == "!selectionFailure"


def test_a_message_is_copied_with_all_its_parts(spelled: Spelled) -> None:
    steps = [
        put("1", "question.in"),
        assign(copy('<from variable="question"/>', '<to variable="again"/>')),
        note_value("$again.in"),
    ]
    variables = '<variable name="again" messageType="d:questionMessage"/>'
    assert spelled(process(traced(*steps), variables=variables)) == "1"


def test_parts_of_simple_types_are_plain_values(spelled: Spelled) -> None:
    steps = [
        assign(copy("3", '<to variable="pair" part="left"/>'), copy("'x'", "$pair.right")),
        note_value("$pair.left + 1"),
        note_value("$pair.right"),
    ]
    assert spelled(process(traced(*steps))) == "4x"


def test_properties_of_parts_of_simple_types_are_selected_by_queries(spelled: Spelled) -> None:  # FM-2
    steps = [
        assign(copy("3", '<to variable="pair" part="left"/>'), copy("'x'", "$pair.right")),
        note_value("bpel:getVariableProperty('pair', 'd:id') + 1"),
        note_value("bpel:getVariableProperty('pair', 'd:name')"),
        assign(copy("7", '<to variable="pair" property="d:id"/>')),
        assign(copy("'y'", '<to variable="pair" property="d:name"/>')),
        note_value("$pair.left"),
        note_value("$pair.right"),
    ]
    assert spelled(process(traced(*steps))) == "4x7y"


def test_an_assign_that_fails_changes_nothing(spelled: Spelled) -> None:
    caught = (
        "<scope><faultHandlers><catchAll><empty/></catchAll></faultHandlers>"
        + assign(copy("1", '<to variable="number"/>'), copy("$unset", '<to variable="number"/>'))
        + "</scope>"
    )
    assert spelled(process(traced(put("7", "number"), caught, note_value("$number")))) == "7"


def test_a_copy_from_nothing_selects_nothing(spelled: Spelled) -> None:
    assert spelled(process(traced(assign(copy("<from/>", '<to variable="number"/>'))))) == "!selectionFailure"
    ignoring = assign(copy("<from/>", '<to variable="number"/>', 'ignoreMissingFromData="yes"'))
    assert spelled(process(traced(put("7", "number"), ignoring, note_value("$number")))) == "7"
    assert spelled(process(traced(assign(copy("1", "<to/>"))))) == "!selectionFailure"
