"""Replaces times, durations and sizes in a search by numbers.

A text that is compared with a name that has a unit is parsed as that: `runtime > '10m'`, `resources.memory >= '2GB'`,
`created > '2026-11-15'`. So a search needs no function other than `ago`, and the rest is plain CEL. A text that is
compared with a name that has a fixed set of values must be one of these."""

from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple, NoReturn

from mendflow.core.expressions.cel import closest_name
from mendflow.core.expressions.scanner import CelToken, tokenize
from mendflow.core.model.errors import RequestError
from mendflow.core.model.ids import Instant
from mendflow.core.model.units import duration_ms, size_bytes
from mendflow.core.query.search_fields import KIND_WORDS, Kind, SearchField, SearchFields

_RELATION = ("<", ">", "=", "!")
_UNITS = ("duration", "size", "time")


class InvalidSearch(RequestError):
    """An invalid search. `position` is the place in its text, from 1; 0 if unknown."""

    code = "bad-search"


def refuse(message: str, position: int | None = None) -> NoReturn:
    where = f"in the search, at character {position}: " if position else "in the search: "
    raise InvalidSearch(where + message, position=position or 0)


class RewrittenSearch(NamedTuple):
    """`longer` says by how much the text grew, and where it had been grown by then."""

    text: str
    longer: list[tuple[int, int]]

    def original(self, offset: int) -> int:
        """Where a place in the text was as people wrote it."""
        return max(0, offset - sum(by for place, by in self.longer if place <= offset))


def replace_amounts(words: SearchFields, text: str, now: Instant) -> RewrittenSearch:
    """The text with its amounts as numbers. `now` is what `ago` counts from."""
    tokens = [each for each in tokenize(text) if each.kind != "space"]
    if (open_at := next((each.start for each in tokens if each.text in ("'", '"')), None)) is not None:
        refuse("a quote starts here that never ends", open_at + 1)
    made, end, longer = "", 0, list[tuple[int, int]]()
    for place, token in enumerate(tokens):
        start, last = token.start, token
        number: int | str | None = None
        if token.kind == "name" and token.text == "ago" and _is_called(tokens, place):
            number, last = _ago(tokens, place, now)
        elif token.kind == "string" and (name := _compared_name(words, tokens, place)) is not None:
            if name.kind == "time" and (equal := _equality(tokens, place)):
                _demand_moment(name, equal, token)
            number = _number(name.kind, token) if name.kind in _UNITS else _value(name, token)
        if number is not None:
            made += text[end:start] + str(number)
            longer.append((len(made), len(str(number)) - (last.end - start)))
            end = last.end
    return RewrittenSearch(made + text[end:], longer)


def _is_called(tokens: list[CelToken], place: int) -> bool:
    before = tokens[place - 1].text if place else ""
    return before != "." and place + 1 < len(tokens) and tokens[place + 1].text == "("


def _ago(tokens: list[CelToken], place: int, now: Instant) -> tuple[int, CelToken]:
    given = tokens[place + 2 : place + 4]
    if len(given) < 2 or given[0].kind != "string" or given[1].text != ")":
        refuse("`ago` wants a duration in quotes, as in ago('2h')", tokens[place].start + 1)
    length = duration_ms(_unquoted(given[0]))
    if length is None:
        refuse(f"{given[0].text} is not a duration; write one such as '90s', '2h', '3 days'", given[0].start + 1)
    return now - length, given[1]


def _number(kind: Kind, token: CelToken) -> int:
    text = _unquoted(token)
    found = _time_ms(text) if kind == "time" else duration_ms(text) if kind == "duration" else size_bytes(text)
    if found is None:
        refuse(f"{text!r} is not {KIND_WORDS[kind]}", token.start + 1)
    return found


def _equality(tokens: list[CelToken], place: int) -> str:
    """By which of `==`, `!=` and `in` a text is compared; empty if by its order."""
    before, after = (
        "".join(each.text for each in tokens[begin : begin + 2]) for begin in (max(0, place - 2), place + 1)
    )
    found = next((each for each in (before, after) if each in ("==", "!=")), "")
    ordered = any(each.text in "<>" for each in tokens[max(0, place - 2) : place + 2])
    return found or ("" if ordered else "in")


def _demand_moment(name: SearchField, equal: str, token: CelToken) -> None:
    """A day is no moment: what happened on it is not found by `==`, and nobody would see why."""
    try:
        day = date.fromisoformat(_unquoted(token))
        after = day + timedelta(days=1)
    except (ValueError, OverflowError):
        return
    within = f"{name.name} >= '{day}' && {name.name} < '{after}'"
    wanted = f"!({within})" if equal == "!=" else within
    refuse(
        f"`{name.name}` is a time, to the millisecond, and a day is not: for that day, in UTC, write {wanted}",
        token.start + 1,
    )


def _time_ms(text: str) -> int | None:
    try:
        moment = datetime.fromisoformat(text)
        moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        return round(moment.timestamp() * 1000)
    except (ValueError, OverflowError):
        return None


def _unquoted(token: CelToken) -> str:
    return token.text.strip("\"'")


def _value(name: SearchField, token: CelToken) -> str | None:
    """Another word for a value; None: it stays as it is."""
    text = _unquoted(token)
    if text in name.synonyms:
        return repr(name.synonyms[text])
    if name.values and text not in name.values:
        known = [*name.values, *name.synonyms]
        refuse(
            f"`{name.name}` is never {text!r}{closest_name(text, known) or f'; it is {one_of(known)}'}", token.start + 1
        )
    return None


def one_of(words: list[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"


def _compared_name(words: SearchFields, tokens: list[CelToken], place: int) -> SearchField | None:
    """The name that a text is compared with."""
    return (
        _compared_before(words, tokens, place)
        or _compared_after(words, tokens, place)
        or _of_list(words, tokens, place)
    )


def _compared_before(words: SearchFields, tokens: list[CelToken], place: int) -> SearchField | None:
    at = place - 1
    while at >= 0 and tokens[at].text in _RELATION:
        at -= 1
    return _name_ending(words, tokens, at) if at < place - 1 else None


def _compared_after(words: SearchFields, tokens: list[CelToken], place: int) -> SearchField | None:
    at = place + 1
    while at < len(tokens) and tokens[at].text in _RELATION:
        at += 1
    return _name(words, tokens, at, at + 3) or _name(words, tokens, at, at + 1) if at > place + 1 else None


def _of_list(words: SearchFields, tokens: list[CelToken], place: int) -> SearchField | None:
    at = place - 1
    while at >= 0 and (tokens[at].kind == "string" or tokens[at].text == ","):
        at -= 1
    if at > 1 and tokens[at].text == "[" and tokens[at - 1].text == "in":
        return _name_ending(words, tokens, at - 2)
    return None


def _name_ending(words: SearchFields, tokens: list[CelToken], at: int) -> SearchField | None:
    return _name(words, tokens, at - 2, at + 1) or _name(words, tokens, at, at + 1)


def _name(words: SearchFields, tokens: list[CelToken], first: int, end: int) -> SearchField | None:
    return words.names.get("".join(each.text for each in tokens[first:end])) if first >= 0 else None
