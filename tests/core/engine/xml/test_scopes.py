"""Scopes with XML: what they declare, what hides what, how faults find their handlers."""

import pytest

from mendflow.core.engine import compensations
from mendflow.core.engine.messages import SetTimer
from mendflow.core.model.expr import XPATH, Expr
from mendflow.core.model.flow import (
    Activity,
    Branch,
    Catch,
    Choose,
    Compensate,
    Empty,
    Invoke,
    LinkSource,
    Parallel,
    Rethrow,
    Scope,
    Sequence,
    Throw,
    Wait,
    While,
)
from mendflow.core.model.values import Value
from mendflow.core.model.xml import ScopeDeclarations, XmlCopy, XmlMessage, XmlSource, XmlTarget, XmlType
from tests.core.engine.world import Play, failed
from tests.core.engine.xml.papers import (
    COUNTED,
    ORDERED,
    XSD,
    assign,
    copy,
    count,
    fault_of,
    left,
    literal,
    order,
    process,
    ran,
    xpath,
)

INT = XmlType(type=f"{{{XSD}}}int")
ELEMENT, MESSAGE = XmlType(element="{urn:o}order"), XmlType(message=ORDERED)


def to(name: str) -> XmlTarget:
    return XmlTarget(variable=name)


def first(name: str, what: str | XmlSource) -> XmlCopy:
    return copy(what, to(name))


def inner(body: Activity, *first: XmlCopy, catches: tuple[Catch, ...] = (), **types: XmlType) -> Scope:
    return Scope(name="inner", body=body, declared=ScopeDeclarations(types=types, first=first), catches=catches)


def note(text: str) -> Activity:
    """An activity that is known by what it wrote."""
    return assign(copy(f"'{text}'", to("text")), name=f"note {text}")


def test_variables_begin_in_their_order_and_with_what_is_outside() -> None:
    scope = inner(assign(copy("$b", to("number"))), first("a", "$amount + 1"), first("b", "$a + 1"), a=INT, b=INT)
    assert left(ran(scope, amount=1), "number") == 3


def test_a_variable_without_a_value_hides_one_of_the_same_name_outside() -> None:
    play = ran(inner(assign(copy("$text", to("number"))), text=INT), text="outside")
    assert fault_of(play) == "uninitializedVariable"
    assert left(play, "text") == "outside"


def test_what_is_written_inside_stays_inside() -> None:
    play = ran(inner(assign(copy("5", to("number")), copy("$number", to("amount"))), number=INT), number=1)
    assert (left(play, "number"), left(play, "amount")) == (1, 5)


def test_a_value_that_cannot_be_worked_out_fails_the_scope_before_it_begins() -> None:
    own = Catch(body=Empty(name="own"), fault="scopeInitializationFailure")
    scope = inner(Empty(name="e"), first("a", "$none"), catches=(own,), a=INT)
    assert fault_of(ran(scope)) == "scopeInitializationFailure"
    caught = Scope(name="outer", body=scope, catches=(Catch(body=note("caught"), fault="scopeInitializationFailure"),))
    assert left(ran(caught), "text") == "caught"


def throwing(name: str = "{urn:o}oops", variable: str = "", *catches: Catch) -> Scope:
    return Scope(name="s", body=Throw(name="throw", fault=name, variable=variable), catches=catches)


def catch(text: str, fault: str | None = None, holds: XmlType | None = None) -> Catch:
    return Catch(body=note(text), fault=fault, holds=holds, variable="caught" if holds else "")


NAMED = "{urn:o}oops"
BY_NAME, ALL = catch("name", NAMED), catch("all")
BY_NAME_AND_MESSAGE, BY_MESSAGE = catch("name and message", NAMED, MESSAGE), catch("message", None, MESSAGE)
BY_NAME_AND_ELEMENT, BY_ELEMENT = catch("name and element", NAMED, ELEMENT), catch("element", None, ELEMENT)
OTHERS = (catch("other", "{urn:o}other"), catch("count", NAMED, XmlType(message=COUNTED)))
EVERY = (*OTHERS, BY_NAME, BY_MESSAGE, BY_ELEMENT, BY_NAME_AND_ELEMENT, BY_NAME_AND_MESSAGE, ALL)


# FM-1: 12.5 of the specification
@pytest.mark.parametrize(
    ("data", "catches", "taken"),
    [
        ("", EVERY, "name"),
        ("", (BY_NAME_AND_MESSAGE, BY_MESSAGE, ALL), "all"),
        ("ordered", EVERY, "name and message"),
        ("ordered", (BY_NAME, BY_NAME_AND_ELEMENT, BY_MESSAGE, ALL), "name and element"),
        ("ordered", (BY_MESSAGE, BY_ELEMENT, ALL, BY_NAME), "name"),
        ("ordered", (ALL, BY_ELEMENT, BY_MESSAGE, *OTHERS), "message"),
        ("ordered", (ALL, BY_ELEMENT, *OTHERS), "element"),
        ("ordered", (*OTHERS, ALL), "all"),
        ("order", EVERY, "name and element"),
        ("order", (BY_MESSAGE, BY_NAME_AND_MESSAGE, BY_ELEMENT, ALL), "element"),
    ],
)
def test_a_fault_goes_to_the_handler_that_says_most_about_it(data: str, catches: tuple[Catch, ...], taken: str) -> None:
    held: dict[str, Value] = {"ordered": {"order": order()}, "order": order()}
    assert left(ran(throwing(NAMED, data, *catches), **held), "text") == taken


def test_a_fault_that_no_handler_fits_goes_on_as_it_was() -> None:
    play = ran(throwing(NAMED, "ordered", *OTHERS), ordered={"order": order()})
    assert fault_of(play) == NAMED
    assert play.ended.fault is not None
    assert play.ended.fault.data == {"type": {"message": ORDERED}, "value": {"order": order()}}


def test_the_variable_of_a_handler_holds_the_data_itself_or_its_one_element() -> None:
    whole = Catch(body=assign(copy("$f.order/@id", to("number"))), fault=NAMED, variable="f", holds=MESSAGE)
    part = Catch(body=assign(copy("$f/@id", to("number"))), fault=NAMED, variable="f", holds=ELEMENT)
    for handler in (whole, part):
        assert left(ran(throwing(NAMED, "ordered", handler), ordered={"order": order()}), "number") == 7


def test_a_rethrown_fault_is_as_it_was_thrown_whatever_the_handler_did_to_its_data() -> None:
    spoil = assign(copy("0", "$f.order/@id"), name="spoil")
    handler = Catch(body=Sequence(name="h", body=(spoil, Rethrow(name="r"))), fault=NAMED, variable="f", holds=MESSAGE)
    play = ran(throwing(NAMED, "ordered", handler), ordered={"order": order()})
    assert play.ended.fault is not None
    assert play.ended.fault.data["value"] == {"order": order()}


def test_a_throw_with_a_variable_that_has_no_value_throws_that_instead() -> None:
    assert fault_of(ran(throwing(NAMED, "order", BY_NAME))) == "uninitializedVariable"


def test_data_that_is_not_xml_is_as_good_as_none() -> None:
    scope = Scope(
        name="s",
        body=Invoke(name="i", partner="partner", operation="tell", sends=TELL),
        catches=(catch("element", None, ELEMENT), catch("all")),
    )
    play = ran(scope, ordered={"order": order()})
    play.finish(play.serial("i"), failed("partnerUnreachable", data={"type": {"what": 1}, "value": 2}))
    assert left(play, "text") == "all"


TELL = XmlMessage(partner_link="partner", operation="tell", variable="ordered")


@pytest.mark.parametrize(("fault", "status"), [("selectionFailure", "failed"), ("joinFailure", "completed")])
def test_a_standard_fault_ends_the_case_where_the_scope_says_so(fault: str, status: str) -> None:
    scope = Scope(name="s", body=Throw(name="t", fault=fault), catches=(catch("all"),), exit_on_standard_fault=True)
    assert ran(scope).status == status


def test_a_handler_is_as_strict_as_its_scope() -> None:
    strict = Scope(
        name="s",
        body=Throw(name="t", fault=NAMED),
        catches=(Catch(body=Throw(name="u", fault="selectionFailure")),),
        exit_on_standard_fault=True,
    )
    play = ran(Scope(name="outer", body=strict, catches=(catch("all"),)))
    assert (fault_of(play), left(play, "text")) == ("selectionFailure", None)


def test_what_xpath_finds_wrong_is_thrown_where_it_is_asked() -> None:
    for text, fault in (("1 +", "subLanguageExecutionFault"), ("a", "subLanguageExecutionFault"), ("$text", "")):
        chosen = Choose(name="c", branches=(Branch(xpath(text), note("yes")),), otherwise=note("no"))
        play = ran(chosen)
        assert fault_of(play) == (fault or "uninitializedVariable")


def test_join_conditions_know_links_by_name() -> None:
    join = Expr("$a and not($b)", language=XPATH)
    joined = Parallel(
        name="f",
        links=("a", "b~2"),
        branches=(
            Empty(name="x", sources=(LinkSource("a"), LinkSource("b~2", xpath("1 = 2")))),
            Sequence(name="y", body=(note("joined"),), targets=("a", "b~2"), join=join),
        ),
    )
    assert left(ran(joined), "text") == "joined"


def due(play: Play) -> int:
    [timer] = play.out.values()
    assert isinstance(timer, SetTimer)
    return timer.at


def test_waits_take_durations_and_deadlines_of_xml_schema() -> None:
    play = ran(Wait(name="w", duration=xpath("'PT1.5S'")))
    assert due(play) == play.now + 1_500
    assert due(ran(Wait(name="w", until=xpath("'2026-01-01'")))) == 1_767_225_600_000
    past = ran(Wait(name="w", duration=xpath("'-PT1S'")))
    assert due(past) == past.now
    for text in ("'soon'", "5", "'P'"):
        assert fault_of(ran(Wait(name="w", duration=xpath(text)))) == "invalidExpressionValue"
        assert fault_of(ran(Wait(name="w", until=xpath(text)))) == "invalidExpressionValue"
    assert fault_of(ran(Wait(name="w", duration=xpath("'P1000Y'")))) == "invalidExpressionValue"


def test_a_compensation_works_on_what_its_scope_left() -> None:
    undo = assign(copy("$kept", to("number")), name="undo")
    done = Scope(
        name="done",
        body=Empty(name="e"),
        declared=ScopeDeclarations(types={"kept": INT}, first=(first("kept", "$number"),)),
        compensation=undo,
    )
    body = Sequence(name="b", body=(done, assign(copy("9", to("number"))), Throw(name="t", fault=NAMED)))
    scope = Scope(name="s", body=body, catches=(Catch(body=Compensate(name="c")),))
    assert left(ran(scope, number=3), "number") == 3


def test_what_undoes_a_scope_from_outside_knows_all_that_the_scope_knew() -> None:
    undo = assign(copy("$kept + $number", to("amount")), copy(literal("<o:order/>"), to("order")), name="undo")
    done = Scope(
        name="done",
        body=Empty(name="e"),
        declared=ScopeDeclarations(types={"kept": INT}, first=(first("kept", "$number"),)),
        compensation=undo,
    )
    play = ran(Sequence(name="b", body=(done, Wait(name="w", duration=xpath("'PT1S'")))), number=3)
    [completed] = compensations(play.case)
    assert completed.flow is not None
    undone = Play(completed.flow, completed.inputs)
    assert undone.status == "completed", undone.ended
    assert left(undone, "amount") == 6


def test_a_case_survives_a_crash_with_all_that_it_holds() -> None:
    waiting = Sequence(
        name="b", body=(assign(copy("$order/@id", to("number"))), Wait(name="w", duration=xpath("'PT1S'")))
    )
    play = Play(process(waiting, order=order(), count=count(1)))
    for with_snapshot in (True, False):
        play.crash(with_snapshot=with_snapshot)
    assert (left(play, "number"), left(play, "count")) == (7, count(1))


def test_large_documents_make_an_event_shorter() -> None:
    large = order(f"<o:note>{'x' * 400_000}</o:note>")
    again = assign(copy("$number + 1", to("number")), copy("$number", "$order/@id"))
    play = ran(While(name="w", condition=xpath("$number < 20"), body=again), order=large, number=0)
    pieces = 1
    while play.status == "running":
        assert play.case.meter.work < 500_000
        play.crash(with_snapshot=bool(pieces % 2))
        play.proceed(next(iter(play.out)))
        pieces += 1
    assert left(play, "number") == 20
    assert pieces >= 10
