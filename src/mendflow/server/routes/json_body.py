"""A JSON body, decoded as exactly what its type says: no text counts as a number, and no number as yes or no."""

import re
from typing import Final, TypeVar

import msgspec

from mendflow.core.model.errors import InvalidRequest, TooLarge
from mendflow.core.model.values import PARTS_MAX

T = TypeVar("T")

COUNTED_BYTES_MIN: Final = 1 << 20
VALUES_MAX: Final = 4 * PARTS_MAX

_PLACE: Final = re.compile(r" - at (?:`key` in )?`\$\.?(.*)`$")


def decode_json(decoder: msgspec.json.Decoder[T], body: bytes) -> T:
    """What the body says. Refused with the place of what does not fit; one that is nested too deeply, or no text, is
    refused by those who handle errors."""
    if len(body) > COUNTED_BYTES_MIN:
        _demand_few_parts(body)
    try:
        return _decoded(decoder, body)
    except msgspec.ValidationError as error:
        told = str(error)
        found = _PLACE.search(told)
        raise _misfit((found[1] if found else "") or "body", _PLACE.sub("", told)) from error
    except msgspec.DecodeError as error:
        raise _misfit("body", f"it is no JSON: {error}" if body else "there is none, and one is wanted") from error


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
