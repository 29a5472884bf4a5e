"""What work on XML counts for never changes, however fast it gets.

An event is cut where it has done enough, and the journal holds what came after the cut. Were a count other than it was,
the cuts of old journals would fall elsewhere, and what they say would be about other steps. So these numbers stay: if a
change of the evaluator moves one, let the evaluator count as before."""

import pytest

from mendflow.core.engine.run import STARTS_MAX, WORK_MAX
from mendflow.core.engine.xml.assignment import WORK_A_COPY, WORK_A_VALIDATION
from mendflow.core.model.xml import XmlTarget
from tests.core.engine.world import Play
from tests.core.engine.xml.papers import assign, copy, count, order, process

LINES = order("".join(f'<o:item sku="{at}">{"abc" * (at % 7)}</o:item>' for at in range(200)) + "<o:note>n</o:note>")
TEXT = XmlTarget(variable="text")


def work(what: str, to: str | XmlTarget = TEXT) -> int:
    """What the event counts for in which this is copied."""
    held = {"order": LINES, "ordered": {"order": LINES}, "number": 5, "count": count(3)}
    return Play(process(assign(copy(what, to)), **held)).case.meter.work


def test_events_are_cut_where_they_always_were() -> None:
    assert (STARTS_MAX, WORK_MAX) == (500, 200_000)
    assert (WORK_A_COPY, WORK_A_VALIDATION) == (150, 100_000)


@pytest.mark.parametrize(
    ("expression", "units"),
    [
        ("1", 150),
        ("'text'", 150),
        ("$number", 150),
        ("$number + 1", 150),
        ("$count", 152),
        ("string($count)", 154),
        ("$order/@id", 596),
        ("$order/o:item[1]", 599),
        ("$order/o:item[$number]", 599),
        ("$order/o:item[position() = $number]", 599),
        ("$order/o:item[last()]", 599),
        ("$order/o:item[@sku = $number]", 1198),
        ("$order/o:item[@sku > 198]", 1198),
        ("count($order/o:item)", 598),
        ("count($order/*)", 797),
        ("sum($order/o:item/@sku)", 998),
        ("count($order//o:item)", 969),
        ("count($order//*[. = 'abc'])", 1945),
        ("string-length($order)", 1003),
        ("count($order/o:item[@sku > ../o:item[1]/@sku])", 2798),
        ("count($order/o:item[. = following-sibling::o:item[1]])", 42339),
        ("$order/o:item[@sku = 5]/preceding-sibling::*[1]", 1210),
        ("concat($order/o:note, substring($order/o:item[3], 2))", 604),
        ("normalize-space($order/o:note)", 598),
        ("translate(string($order), 'a', 'b')", 1020),
        ("$ordered.order/o:note", 596),
        ("bpel:getVariableProperty('ordered', 'o:number')", 150),
        ("boolean($order/o:none) or $order/o:item = 'abcabc'", 604),
        ("$order/o:item != $order/o:note", 972),
        ("count($order/o:item | $order/o:note)", 1376),
        ("count(($order/o:item)[@sku mod 2 = 0])", 1198),
    ],
)
def test_an_expression_counts_for_what_it_always_did(expression: str, units: int) -> None:
    assert work(expression) == units


@pytest.mark.parametrize(
    ("source", "target", "units"),
    [
        ("'x'", "$order/o:note", 1876),
        ("$order/o:item[2]", "$order/o:item[1]", 2330),
        ("$number", "$ordered.order/@id", 1876),
        ("$order/o:item[200]", "$order/o:note", 2329),
    ],
)
def test_a_copy_counts_for_what_it_always_did(source: str, target: str, units: int) -> None:
    assert work(source, target) == units


def test_what_is_known_already_counts_the_same() -> None:
    """A tree that was kept from before saves time, and no count."""
    again = [work("count($order//*[. = 'abc'])") for _ in range(3)]
    assert len(set(again)) == 1
