"""What processes may look like, and what is rarely asked of them. FM-1"""

from collections.abc import Callable

import pytest

from tests.bpel.documents import (
    SPELL,
    assign,
    begin,
    buy,
    catch,
    condition,
    copy,
    flow,
    for_each,
    handlers,
    note,
    note_value,
    process,
    put,
    scope,
    sequence,
    sources,
    targets,
    throw,
    traced,
    undoing,
    wait,
)

Spelled = Callable[[str], str]

LITERAL = '<from><literal><d:order id="7"><d:item>a</d:item><d:item>b</d:item></d:order></literal></from>'
ORDER = assign(copy(LITERAL, '<to variable="order"/>'))
SPELLING = '<to variable="spelling" part="out"/>'
FAIL = throw("p:no")
REFUSAL = 'faultVariable="refusal" faultMessageType="d:refusalMessage"'


def invalid(body: str) -> str:
    return scope(handlers(catch("bpel:invalidVariables", note_value("$answer.out"))), body)


@pytest.mark.parametrize(
    ("steps", "says"),
    [
        ([ORDER, '<validate variables="order"/>', note("a")], "a"),
        ([ORDER, assign(copy("'x'", "$order/@id")), '<validate variables="order"/>'], "!invalidVariables"),
        ([ORDER, put("'x'", "number"), '<validate variables="order number"/>'], "!invalidVariables"),
        ([put("'x'", "answer.out"), '<validate variables="answer"/>'], "!invalidVariables"),
        ([put("5", "answer.out"), invalid(assign(copy("'x'", "$answer.out"), attributes='validate="yes"'))], "5"),
        ([assign(copy("4", "$answer.out"), attributes='validate="yes"'), note("a")], "a"),
    ],
)
def test_validation_asks_the_schema(spelled: Spelled, steps: list[str], says: str) -> None:
    assert spelled(process(traced(*steps))) == says


@pytest.mark.parametrize(
    ("steps", "says"),
    [
        ([f"<if><condition><![CDATA[$word.in < 3]]></condition>{note('a')}</if>"], "a"),
        ([f"<if><condition><!-- x -->true()<!-- y --></condition>{note('a')}</if>"], "a"),
        (["<!-- x --><?y z?>", note("a")], "a"),
        (
            [assign(copy("<from><literal><![CDATA[<x>&]]></literal></from>", SPELLING)), note_value("$spelling.out")],
            "<x>&",
        ),
        ([assign(copy("<from><literal> a </literal></from>", SPELLING)), note_value("$spelling.out")], " a "),
        (
            [
                assign(copy("<from><literal><!-- x --><d:order id='8'/></literal></from>", '<to variable="order"/>')),
                note_value("$order/@id"),
            ],
            "8",
        ),
        (['<empty name="e"/>', '<empty name="e"/>', scope(note("x"), name="e")], "x"),
    ],
)
def test_xml_may_be_written_as_xml_may_be(spelled: Spelled, steps: list[str], says: str) -> None:
    assert spelled(process(traced(*steps))) == says


@pytest.mark.parametrize(
    ("what", "to", "shown", "says"),
    [
        ("$order/d:item[2]", "$order/d:item[1]", "concat($order/d:item[1], count($order/d:item))", "b2"),
        ("$order", "$order/d:item[1]", "concat(count($order/d:item[1]/d:item), $order/d:item[1]/@id)", "27"),
        ("$order/@id", "$order/d:item[1]", "$order/d:item[1]", "7"),
        ("$order/d:item[1]", "$order/@id", "$order/@id", "a"),
        ("$order/d:item[1]/text()", "$order/d:item[2]/text()", "$order/d:item[2]", "a"),
    ],
)
def test_elements_attributes_and_texts_replace_each_other(
    spelled: Spelled, what: str, to: str, shown: str, says: str
) -> None:
    assert spelled(process(traced(ORDER, assign(copy(what, to)), note_value(shown)))) == says


def test_names_may_be_any_that_xml_has(spelled: Spelled) -> None:
    for name in ("my-var_1", "größe"):
        variable = f'<variable name="{name}" type="xsd:int"/>'
        assert spelled(process(traced(put("4", name), note_value(f"${name}")), variables=variable)) == "4"


def test_inner_names_hide_outer_ones(spelled: Spelled) -> None:
    inner = flow(note("b", inside=sources("l")), note("c", inside=targets("l")), links="l")
    outer = flow(sequence(note("a", inside=sources("l")), inner), note("d", inside=targets("l")), links="l")
    assert spelled(process(traced(outer))) in ("abcd", "abdc", "adbc")
    loop = for_each(note_value("$number"), last="2").replace('counterName="n"', 'counterName="number"')
    assert spelled(process(traced(put("9", "number"), loop, note_value("$number")))) == "129"
    shadowed = scope(handlers(catch("p:no", put("5", "refusal.payload"), REFUSAL)), throw("p:no", "refusal"))
    text = process(traced(put("9", "refusal.payload"), shadowed, note_value("$refusal.payload")))
    assert spelled(text) == "9"


def test_of_two_faults_at_once_one_is_handled(spelled: Spelled) -> None:
    both = handlers(catch("p:a", note("a")), catch("p:b", note("b")))
    assert spelled(process(traced(scope(both, flow(throw("p:a"), throw("p:b")))))) in ("a", "b")


def test_no_turns_are_enough_turns(spelled: Spelled) -> None:
    done = "<completionCondition><branches>1</branches></completionCondition>"
    assert spelled(process(traced(for_each(note("a"), start="3", last="1", done=done)))) == ""


def test_handlers_call_partners(spelled: Spelled) -> None:
    called = sequence(buy(3), note_value("$goods.out"))
    ended = scope(f"<terminationHandler>{called}</terminationHandler>", wait(9))
    assert spelled(process(traced(scope(handlers(all=note("x")), flow(ended, sequence(wait(1), FAIL)))))) == "3x"
    undone = scope(undoing(called), note("a"), name="a")
    assert spelled(process(traced(scope(handlers(all="<compensate/>"), sequence(undone, FAIL))))) == "a3"


def test_alarms_have_alarms_in_them(spelled: Spelled) -> None:
    inner = "<eventHandlers><onAlarm><for>'PT1S'</for>" + scope(note("i")) + "</onAlarm></eventHandlers>"
    outer = "<eventHandlers><onAlarm><for>'PT1S'</for>" + scope(inner, wait(2)) + "</onAlarm></eventHandlers>"
    assert spelled(process(traced(scope(outer, wait(5))))) == "i"


def test_a_condition_of_a_link_that_has_no_value_is_a_fault_of_its_source(spelled: Spelled) -> None:
    failing = flow(note("a", inside=sources("l:$unset = 1")), note("b", inside=targets("l")), links="l")
    text = process(traced(scope(handlers(catch("bpel:uninitializedVariable", note("u"))), failing)))
    assert spelled(text) == "au"


def test_every_element_may_have_a_prefix(spelled: Spelled) -> None:
    text = process(sequence(begin("spell"), f"<if>{condition('true()')}{note('a')}</if>", SPELL))
    for name in ("process", "sequence", "receive", "if", "condition", "assign", "copy", "from", "to", "reply"):
        for mark in (">", " "):
            text = text.replace(f"<{name}{mark}", f"<bpel:{name}{mark}")
        text = text.replace(f"</{name}>", f"</bpel:{name}>")
    assert spelled(text) == "a"
