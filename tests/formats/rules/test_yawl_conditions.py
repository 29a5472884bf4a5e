"""The conditions of YAWL's rules in CEL."""

import pytest

from mendflow.core.model.values import Value
from mendflow.formats.rules.yawl_conditions import TODAY, Untranslatable, to_cel, to_yawl
from tests.core.rules.trees import holds


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("True", "true"),
        ("false", "false"),
        ("Fever = true", "data.Fever == true"),
        ("Name = smith", 'data.Name == "smith"'),
        ('Name != "van Dyck"', 'data.Name != "van Dyck"'),
        ('trigger="Band Broken Up"', 'trigger == "Band Broken Up"'),
        ("TicketsSold < (Seating * 0.75)", "data.TicketsSold < data.Seating * 0.75"),
        ("Seating > TicketsSold", "data.Seating > data.TicketsSold"),
        ("a = 1 & b = 2", "data.a == 1 && data.b == 2"),
        ("a = 1 | b = 2 & c = 3", "(data.a == 1 || data.b == 2) && data.c == 3"),
        ("a = 1 & b = 2 | c = 3", "data.a == 1 && data.b == 2 || data.c == 3"),
        ("a = 1 | (b = 2 & c = 3)", "data.a == 1 || data.b == 2 && data.c == 3"),
        ("a = 1 AND b = 2 OR c = 3", "data.a == 1 && data.b == 2 || data.c == 3"),
        ("!a = 1 & b = 2", "!(data.a == 1 && data.b == 2)"),
        ("(!a = 1) & b = 2", "!(data.a == 1) && data.b == 2"),
        ("a - b - 1 > 2", "data.a - data.b - 1 > 2"),
        ("a - (b - 1) > 2", "data.a - (data.b - 1) > 2"),
        ("a / 2 > 1", "double(data.a) / 2 > 1"),
        ("a < b = c < d", "data.a < data.b == (data.c < data.d)"),
        ("x > -3", "data.x > -3"),
        ("Urgent", "data.Urgent"),
        ("hasTimerExpired(this)", "timed_out == item.id"),
        ("isNotCompleted(this)", '!(item.status in ["completed", "failed"])'),
        ("max(a, b + 1) > 3", "math.greatest(data.a, data.b + 1) > 3"),
        ("MIN(a, max(b, 2)) = 3", "math.least(data.a, math.greatest(data.b, 2)) == 3"),
        ("Day = today()", f"data.Day == {TODAY}"),
        ("cost(case()) > 5 * 2", 'sources["cost"]["cost(case())"] > 5 * 2'),
        ("cost( case(last 5), task('A b') ) > 5", """sources["cost"]["cost( case(last 5), task('A b') )"] > 5"""),
        ("cheapestVariant(a b) = c", 'sources["cost"]["cheapestVariant(a b)"] == data.c'),
    ],
)
def test_a_condition_in_cel(theirs: str, ours: str) -> None:  # EX-12
    assert to_cel(theirs, ["Seating", "TicketsSold", "c", "d"]) == ours


@pytest.mark.parametrize(
    ("theirs", "data", "held"),
    [
        ("a / 2 = 1.5", {"a": 3}, True),
        ("!a = 1 & b = 2", {"a": 1, "b": 3}, True),
        ("a = 1 | b = 2 & c = 3", {"a": 1, "b": 0, "c": 0}, False),
        ("a < b = (c < d)", {"a": 1, "b": 2, "c": 1, "d": 2}, True),
        ("Name = smith", {"Name": "smith"}, True),
        ("missing > 3", {}, False),
        ("max(a, b) = 3", {"a": 3, "b": 2}, True),
        ("min(a, b) = 3", {"a": 3, "b": 2.5}, False),
    ],
)
def test_a_condition_means_what_it_means_there(theirs: str, data: dict[str, Value], held: bool) -> None:  # EX-12
    assert holds(to_cel(theirs, data), {"data": data}) is held


@pytest.mark.parametrize(
    ("theirs", "said"),
    [
        ("", "empty"),
        ("{/a/b = 3}", "XQuery"),
        ("/a/b = 3", "XQuery"),
        ("cost(case( > 5", "not closed"),
        ("max(1) > x", "take two values"),
        ("max(1, 2, 3) > x", "take two values"),
        ("later() = x", "function `later`"),
        ("a =", "ends too early"),
        ("(a = 1", "not closed"),
        ("a = 1)", "not expected"),
        ("Name = John Smith", "`Smith` is not expected"),
        ("a # b", "means nothing"),
        ("(" * 60 + "a" + ")" * 60, "too many brackets"),
    ],
)
def test_what_has_no_counterpart_is_named(theirs: str, said: str) -> None:  # EX-12
    with pytest.raises(Untranslatable) as caught:
        to_cel(theirs)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("true", "True"),
        ('data.Name == "smith"', 'Name = "smith"'),
        ("case.data.n > 3 && item.data.ok == true", "n > 3 & ok = true"),
        ("data.a == 1 || data.b == 2 && data.c == 3", "a = 1 | (b = 2 & c = 3)"),
        ('trigger == "Rain"', 'trigger = "Rain"'),
        ('fault.type == "oom"', None),
        ("data.l.exists(x, x > 3)", None),
        ("data.a.b == 3", None),
        ("data.t == 'a\"b'", None),
    ],
)
def test_a_condition_of_ours_in_their_words(ours: str, theirs: str | None) -> None:  # EX-12
    assert to_yawl(ours) == theirs
