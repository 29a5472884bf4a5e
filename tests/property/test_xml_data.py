"""Laws of XML data: whatever is copied where, a case with XML either does all of it or faults by name and changes
nothing, keeps to what is declared, and is the same when it is replayed."""

from hypothesis import given, settings
from hypothesis import strategies as st

from mendflow.core.engine.faults import STANDARD
from mendflow.core.model.flow import Catch, Empty, Scope, Sequence
from mendflow.core.model.values import Value
from mendflow.core.model.xml import XmlCopy, XmlSource, XmlTarget, element_text
from mendflow.core.xml.reader import read
from mendflow.core.xml.tree import Element
from mendflow.core.xml.writer import write
from tests.core.engine.world import Play
from tests.core.engine.xml.papers import NUMBER, TYPES, assign, count, left, order, process, xpath
from tests.examples import examples

PARTS = {"ordered": "order", "again": "order", "counted": "count", "mixed": "count"}
EXPRESSIONS = (
    *("1", "-0.5", "'text'", "''", "true()", "1 div 0", "$number + 1", "$order/@id", "$order/o:item[1]"),
    *("$order/o:item", "$order/o:note/text()", "$ordered.order", "$ordered.order/o:none", "$count", "string($order)"),
    *("$nobody", "1 +", "bpel:getVariableProperty('ordered', 'o:number')", "$mixed.size * 2", "//o:item", "$order/.."),
)
PLACES = (
    *("$order", "$order/@id", "$order/o:item[1]", "$order/o:item[2]/@sku", "$order/o:note/text()", "$order/o:none"),
    *("$ordered.order", "$ordered.order/o:item[last()]", "$counted.count", "$mixed.size", "$number", "$text", "$whole"),
    *("$whole/*", "$count/text()", "1", "$order/o:item"),
)
LITERALS = ("x", " 5 ", "", '<o:order id="3"><o:item>z</o:item></o:order>', "<o:count>4</o:count>", "<a/><b/>", "a<b/>")
QUERIES = (".", "@id", "o:item[1]", "o:none", "count(*)", "text()")


@st.composite
def sources(draw: st.DrawFn) -> XmlSource:
    match draw(st.integers(0, 4)):
        case 0:
            return XmlSource(expression=xpath(draw(st.sampled_from(EXPRESSIONS))))
        case 1:
            return XmlSource(literal=f'<literal xmlns:o="urn:o">{draw(st.sampled_from(LITERALS))}</literal>')
        case 2:
            return XmlSource(variable=draw(st.sampled_from(["ordered", "order", "counted"])), property=NUMBER)
        case 3:
            return XmlSource(partner_link=draw(st.sampled_from(["partner", "unknown"])), endpoint="partnerRole")
    name, query = draw(st.sampled_from(sorted(TYPES))), draw(st.none() | st.sampled_from(QUERIES))
    part = PARTS.get(name, "") if draw(st.booleans()) else ""
    return XmlSource(variable=name, part=part, query=xpath(query) if query and (part or name not in PARTS) else None)


@st.composite
def places(draw: st.DrawFn) -> XmlTarget:
    match draw(st.integers(0, 3)):
        case 0:
            return XmlTarget(expression=xpath(draw(st.sampled_from(PLACES))))
        case 1:
            return XmlTarget(variable=draw(st.sampled_from(["ordered", "order", "counted"])), property=NUMBER)
        case 2:
            return XmlTarget(partner_link=draw(st.sampled_from(["partner", "unknown"])))
    name, query = draw(st.sampled_from(sorted(TYPES))), draw(st.none() | st.sampled_from(QUERIES))
    part = PARTS.get(name, "") if draw(st.booleans()) else ""
    return XmlTarget(variable=name, part=part, query=xpath(query) if query else None)


COPIES = st.lists(
    st.builds(XmlCopy, source=sources(), target=places(), keep_name=st.booleans(), ignore_missing=st.booleans()),
    min_size=1,
    max_size=4,
)
HELD: dict[str, Value] = {
    "order": order(),
    "ordered": {"order": order(id=2)},
    "count": count(1),
    "number": 3,
    "text": "t",
    "mixed": {"size": 4},
}


@settings(max_examples=examples(300))
@given(COPIES, st.booleans())
def test_copies_happen_all_or_not_at_all_whatever_they_are(copies: list[XmlCopy], validate: bool) -> None:
    caught = Scope(
        name="s",
        body=assign(*copies, validate=validate),
        catches=(Catch(body=assign(XmlCopy(source=SAID, target=TEXT), name="said")),),
    )
    play = Play(process(Sequence(name="b", body=(caught, Empty(name="e"))), **HELD)).run_out()
    assert play.status == "completed", play.ended
    if left(play, "text") == "faulted":
        assert {**play.case.variables, "text": HELD["text"]} == HELD
    for name, value in play.case.variables.items():
        for each in value.values() if TYPES[name].message else [value]:
            if (text := element_text(each)) is not None:
                assert write(read(text)) == text, "what is kept is as it is written"
    play.crash(with_snapshot=False)


SAID = XmlSource(expression=xpath("'faulted'"))
TEXT = XmlTarget(variable="text")


@given(COPIES)
def test_what_is_wrong_with_a_copy_is_a_standard_fault(copies: list[XmlCopy]) -> None:
    play = Play(process(assign(*copies), **HELD))
    assert play.ended.fault is None or play.ended.fault.name in STANDARD


@given(st.sampled_from(["o:item[1]", "o:item[2]", "o:note"]), st.sampled_from(["o:item[1]", "o:item[2]", "o:note"]))
def test_an_element_that_replaces_another_keeps_its_content_and_takes_its_name(source: str, target: str) -> None:
    copies = (XmlCopy(source=at(f"$order/{source}"), target=XmlTarget(expression=xpath(f"$order/{target}"))),)
    play = Play(process(assign(*copies), **HELD))
    before, after = read(order()["$xml"]), read(left(play, "order")["$xml"])
    places = {"o:item[1]": 0, "o:item[2]": 1, "o:note": 2}
    old, new = _child(before, places[source]), _child(after, places[target])
    assert new.name == _child(before, places[target]).name
    assert (new.string(), {name: each.value for name, each in new.attributes.items()}) == (
        old.string(),
        {name: each.value for name, each in old.attributes.items()},
    )


def at(text: str) -> XmlSource:
    return XmlSource(expression=xpath(text))


def _child(root: Element, place: int) -> Element:
    return list(root.elements())[place]
