"""A JSON body, decoded as exactly what its type says: no text counts as a number, and no number as yes or no."""

import re
from typing import Final, TypeVar

import msgspec

from mendflow.core.model.errors import InvalidRequest, TooLarge
from mendflow.core.model.values import PARTS_MAX, Value

T = TypeVar("T")

COUNTED_BYTES_MIN: Final = 1 << 20
VALUES_MAX: Final = 4 * PARTS_MAX

NUL: Final = rb"\u0000"

_PLACE: Final = re.compile(r" - at (?:`key` in )?`\$\.?(.*)`$")


def decode_json(decoder: msgspec.json.Decoder[T], body: bytes) -> T:
    """What the body says. Refused with the place of what does not fit; one that is nested too deeply, or no text, is
    refused by those who handle errors."""
    if len(body) > COUNTED_BYTES_MIN:
        _demand_few_parts(body)
    try:
        read = _decoded(decoder, body)
    except msgspec.ValidationError as error:
        told = str(error)
        found = _PLACE.search(told)
        raise _misfit((found[1] if found else "") or "body", _PLACE.sub("", told)) from error
    except msgspec.DecodeError as error:
        raise _misfit("body", f"it is no JSON: {error}" if body else "there is none, and one is wanted") from error
    if NUL in body and (place := _place_of_nul(read)):
        raise _misfit(place, "it has the character NUL, which is in no name or text here")
    return read


def _place_of_nul(read: object) -> str:
    """The field in which there is a NUL, of what the type of the body names: fields of structs, and what is in their
    lists. What may be any value, as an input of a case, may have one."""
    pending: list[tuple[str, object]] = [("", read)]
    while pending:
        place, part = pending.pop()
        if isinstance(part, str) and "\0" in part:
            return place or "body"
        if isinstance(part, msgspec.Struct):
            before = f"{place}." if place else ""
            named = (each.name for each in msgspec.structs.fields(part) if each.type is not Value)
            pending += [(f"{before}{name}", getattr(part, name)) for name in named]
        elif isinstance(part, list | tuple | set | frozenset):
            pending += [(f"{place}[{number}]", each) for number, each in enumerate(part)]
        elif isinstance(part, dict) and any(isinstance(each, msgspec.Struct) for each in part.values()):
            pending += [(place, each) for each in (*part, *part.values())]
    return ""


def _demand_few_parts(body: bytes) -> None:
    """Refuse a body with very many lists, maps and values before it is read: no value may have as many, and reading
    them takes long. Brackets and commas in texts count too: such a text is given as a file."""
    if body.count(b"[") + body.count(b"{") > PARTS_MAX or body.count(b",") > VALUES_MAX:
        raise TooLarge(
            f"the body has more than {PARTS_MAX:,} lists and maps, or {VALUES_MAX:,} values, where the characters [, {{"
            " and , in texts count too; give it as a file",
            parts_max=PARTS_MAX,
        )


def _decoded(decoder: msgspec.json.Decoder[T], body: bytes) -> T:
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        if "got `float`" not in str(error):
            raise
    # JSON has numbers only, so 2.0 is an integer too; hardly anybody writes one so.
    return msgspec.convert(_PLAIN.decode(body), decoder.type, str_keys=True)


def _number(digits: str) -> int | float:
    value = float(digits)
    return int(value) if value.is_integer() else value


_PLAIN: Final = msgspec.json.Decoder(float_hook=_number)


def _misfit(place: str, text: str) -> InvalidRequest:
    return InvalidRequest(f"{place}: {text}", field=place, problems=[{"field": place, "message": text}])
