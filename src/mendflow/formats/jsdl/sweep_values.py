"""The values that a parameter of a sweep runs through: a list, or numbers from a first to a last one."""

from decimal import Decimal, InvalidOperation
from typing import Final

from mendflow.core.xml import ParsedElement
from mendflow.formats.jsdl.reader import JsdlReader, abbreviate, elements, local
from mendflow.formats.jsdl.vocabulary import MANY

INTEGERS: Final = "LoopInteger"
DIGITS_MAX: Final = 30


def values_of(reader: JsdlReader, at: ParsedElement, most: int) -> tuple[ParsedElement | str, ...]:
    """At most so many values; more are a problem, and so are none."""
    if local(at) == "Values":
        reader.attributes(at)
        given = reader.parts(at, {"Value": MANY}).get("Value", [])
        values: list[ParsedElement | str] = [each if elements(each) else reader.text(each) for each in given]
    else:
        values = _loop(reader, at, most)
    if not values:
        reader.problem(at, f"<{local(at)}> gives no value")
    if len(values) > most:
        reader.problem(at, f"<{local(at)}> gives {len(values):,} values or more; a sweep has at most {most:,} jobs")
    return tuple(values[:most])


def _loop(reader: JsdlReader, at: ParsedElement, most: int) -> list[ParsedElement | str]:
    given = reader.attributes(at, "start", "end", "step")
    start, end = (_number(reader, at, given.get(name, ""), name) for name in ("start", "end"))
    step = _number(reader, at, given.get("step", "1"), "step")
    left_out = [_exception(reader, each) for each in reader.parts(at, {"Exception": MANY}).get("Exception", [])]
    if start is None or end is None or step is None or None in left_out:
        return []
    if not step:
        reader.problem(at, f"<{local(at)}> has a step of 0, and would never end")
        return []
    count = int((end - start) / step) + 1 if (end - start) * step >= 0 else 0
    numbers = (start + step * n for n in range(min(count, most + len(left_out) + 1)))
    return [f"{each.normalize():f}" for each in numbers if each not in left_out]


def _exception(reader: JsdlReader, at: ParsedElement) -> Decimal | None:
    """A number that is left out; some write it as an attribute, some as text."""
    given = reader.attributes(at, "value").get("value")
    return _number(reader, at, given if given is not None else reader.text(at, "value"), "value")


def _number(reader: JsdlReader, at: ParsedElement, text: str, name: str) -> Decimal | None:
    """Exact, as it is written: three times 0.1 is 0.3."""
    text = text.strip()
    try:
        number = Decimal(text) if len(text) <= DIGITS_MAX and "_" not in text else Decimal("nan")
    except InvalidOperation:
        number = Decimal("nan")
    outer = at.getparent()
    whole = INTEGERS in (local(at), local(outer) if outer is not None else "")
    if not number.is_finite() or number.adjusted() > DIGITS_MAX or number.adjusted() < -DIGITS_MAX:
        reader.problem(at, f"<{local(at)}> needs a number as its {name}, not {abbreviate(text)}")
        return None
    if whole and number != number.to_integral_value():
        reader.problem(at, f"<{local(at)}> needs a whole number as its {name}, not {abbreviate(text)}")
        return None
    return number
