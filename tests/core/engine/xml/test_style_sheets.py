"""Assigns through style sheets: the engine asks for each result, and does all copies when it has them."""

from mendflow.core.engine.messages import RestartItem, RunStyleSheet
from mendflow.core.model.flow import Catch, Empty, Scope
from mendflow.core.model.ids import ItemId
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.values import Value
from mendflow.core.model.xml import XmlTarget
from tests.core.engine.world import Play, failed
from tests.core.engine.xml.papers import assign, copy, fault_of, left, order, process, ran, text_in

FLIP = "bpel:doXslTransform('flip.xsl', $order)"
SAY = "bpel:doXslTransform('say.xsl', $order, 'loud', $flag, 'times', 2)"
ORDER, TEXT, NUMBER = XmlTarget(variable="order"), XmlTarget(variable="text"), XmlTarget(variable="number")


def out(play: Play) -> RunStyleSheet:
    [found] = [each for each in play.given if isinstance(each, RunStyleSheet) and each.serial == serial_of(play)]
    return found


def serial_of(play: Play) -> int:
    [serial] = play.case.index.serials
    return serial


def made(play: Play, value: Value) -> None:
    play.finish(serial_of(play), Outcome(outputs={"result": value}))


def test_an_assign_waits_for_its_style_sheet_and_then_copies() -> None:
    play = ran([copy("1", NUMBER), copy(FLIP, ORDER)], order=order())
    asked = out(play)
    assert (asked.sheet, asked.source, asked.params, asked.item) == ("flip.xsl", text_in(order()), (), "assign")
    assert left(play, "number") is None
    made(play, order(id=8))
    assert (play.status, left(play, "number"), left(play, "order")) == ("completed", 1, order(id=8))


def test_parameters_go_along_and_a_text_may_come_back() -> None:
    play = ran([copy(SAY, TEXT)], order=order(), flag=True)
    assert out(play).params == (("loud", True), ("times", 2))
    made(play, "aa")
    assert left(play, "text") == "aa"


def test_each_result_is_asked_for_once_and_one_may_be_made_of_another() -> None:
    twice = [copy(FLIP, ORDER), copy(FLIP, ORDER), copy("bpel:doXslTransform('flip.xsl', $order)/@id", NUMBER)]
    play = ran(twice, order=order(id=1))
    for at, flipped in ((1, 2), (2, 1)):
        assert f'id="{at}"' in out(play).source
        play.crash(with_snapshot=at == 1)
        made(play, order(id=flipped))
    assert (play.status, left(play, "number")) == ("completed", 2)
    assert sum(isinstance(each, RunStyleSheet) for each in play.given) == 2


def test_a_sheet_that_fails_fails_the_assign_and_changes_nothing() -> None:
    body = assign(copy("1", NUMBER), copy(FLIP, ORDER))
    caught = Scope(name="s", body=body, catches=(Catch(body=Empty(name="e"), fault="xsltStylesheetNotFound"),))
    play = ran(caught, order=order())
    play.finish(serial_of(play), failed("xsltStylesheetNotFound"))
    assert (play.status, left(play, "number"), left(play, "order")) == ("completed", None, order())


def test_what_is_no_element_is_no_source() -> None:
    assert fault_of(ran([copy("bpel:doXslTransform('flip.xsl', 'text')", TEXT)])) == "xsltInvalidSource"


def test_what_fails_after_a_result_came_undoes_that_too() -> None:
    play = ran([copy(FLIP, ORDER), copy("$none", TEXT)], order=order())
    made(play, order(id=8))
    assert (fault_of(play), left(play, "order")) == ("uninitializedVariable", order())


def test_an_assign_that_waits_can_be_begun_again() -> None:
    play = Play(process(assign(copy(FLIP, ORDER)), order=order()))
    before = serial_of(play)
    play.do(RestartItem(item=ItemId("assign")))
    assert serial_of(play) != before
    made(play, order(id=8))
    assert left(play, "order") == order(id=8)
