"""Copies into documents that are looked at and changed again and again: whatever is kept from one to the next, they do
what they would do in a document that was read just now."""

import pytest

from mendflow.core.model.flow import ForEach, Scope
from mendflow.core.model.values import Value
from mendflow.core.model.xml import XmlTarget
from mendflow.core.xml.reader import read_shared
from tests.core.engine.xml.papers import assign, copy, fault_of, left, order, ran, text_in, xpath

LINES = 40
NUMBER = XmlTarget(variable="number")


def items(**changed: str) -> Value:
    """An order of many items; the n-th is `changed["n"]`, if that is given."""
    lines = (changed.get(f"_{n}", f'<o:item sku="{n}">{n}</o:item>') for n in range(1, LINES + 1))
    return order("".join(lines))


def test_a_loop_changes_each_line_and_sees_what_it_changed() -> None:
    turn = assign(copy("$i * 2", "$order/o:item[$i]"), copy("$number + $order/o:item[position() = $i]", NUMBER))
    body = Scope(name="turn", body=turn)
    loop = ForEach(name="loop", first=xpath("1"), last=xpath("count($order/o:item)"), variable="i", body=body)
    play = ran(loop, order=items(), number=0)
    assert left(play, "number") == LINES * (LINES + 1)
    wanted = {f"_{n}": f'<o:item sku="{n}">{2 * n}</o:item>' for n in range(1, LINES + 1)}
    assert left(play, "order") == items(**wanted)


def test_a_line_is_copied_to_another_of_the_same_document() -> None:
    play = ran(
        [copy("$order/o:item[1]", "$order/o:item[3]"), copy("$order/o:item[3]/@sku", "$order/o:item[4]")], order=items()
    )
    assert left(play, "order") == items(_3='<o:item sku="1">1</o:item>', _4='<o:item sku="4">1</o:item>')


def test_a_document_goes_into_a_line_of_itself() -> None:
    play = ran([copy("$order", "$order/o:item[2]", keep_name=True)], order=items())
    inner = text_in(items()).replace(' xmlns:o="urn:o"', "")
    assert left(play, "order") == items(_2=inner)


@pytest.mark.parametrize("wrong", ["$order/o:item", "$order/o:none", "$order/o:item[$count]", "$order/o:item["])
def test_an_assign_that_fails_leaves_the_document_as_it_was(wrong: str) -> None:
    play = ran([copy("'new'", "$order/o:item[5]"), copy("1", wrong)], order=items())
    assert fault_of(play) in ("selectionFailure", "subLanguageExecutionFault", "uninitializedVariable")
    assert left(play, "order") == items()
    assert read_shared(text_in(items())).string() == "".join(str(n) for n in range(1, LINES + 1))


def test_a_document_that_only_says_where_is_not_changed_and_not_read_again() -> None:
    other = order('<o:item sku="3"/>')
    before = read_shared(text_in(other))
    play = ran([copy("'x'", "$order/o:item[@sku = $again.order/o:item/@sku]")], order=items(), again={"order": other})
    assert left(play, "order") == items(_3='<o:item sku="3">x</o:item>')
    assert left(play, "again") == {"order": other}
    assert read_shared(text_in(other)) is before
