"""Bounds of what is kept of where a case came from, and who may use it.

Whoever starts a case says which paths of his machine it came from, and commands on his machine read and write by them
later. So they are used for nobody but the one who told them, by whom the server records them: a name of a token, or an
account (`account ann`), which no token has as its name."""

from collections.abc import Iterator
from typing import Final

import msgspec

from mendflow.core.model.views import CaseOrigin
from mendflow.lazy import lazy_pattern

PATH_CHARS_MAX: Final = 4_096
INPUTS_MAX: Final = 256
ORIGIN_CHARS_MAX: Final = 65_536
_CONTROL: Final = lazy_pattern(r"[\x00-\x1f\x7f-\x9f]")
_PATHS: Final = ("flow", "inputs_file", "output_dir", "report")
_TELLER: Final = "told_by"


def is_told_by(origin: CaseOrigin | None, teller: str) -> bool:
    """Whether this is the one who said where the case came from. Nobody is, where that is not known."""
    return origin is not None and bool(teller) and origin.told_by == teller


def origin_flaw(origin: CaseOrigin) -> str:
    """What is too much of it, or is no path, by its field; empty if nothing is."""
    if len(origin.inputs) > INPUTS_MAX:
        return f"origin.inputs: it names {len(origin.inputs):,} inputs, and may name at most {INPUTS_MAX}"
    for field, text in _texts(origin):
        if flaw := _path_flaw(text):
            return f"origin.{field}: {flaw}"
    for name, text in origin.inputs.items():
        if flaw := _path_flaw(name) or _text_flaw(text):
            return f"origin.inputs.{name!r:.80}: {flaw}"
    if (chars := _chars(origin)) > ORIGIN_CHARS_MAX:
        return f"origin: it has {chars:,} characters, and may have at most {ORIGIN_CHARS_MAX:,}"
    return ""


def bounded_origin(origin: CaseOrigin) -> CaseOrigin:
    """The same without what is too much of it, or is no path."""
    if not origin_flaw(origin):
        return origin
    kept = {field: "" if _path_flaw(text) else text for field, text in _texts(origin)}
    inputs: dict[str, str] = {}
    room = ORIGIN_CHARS_MAX - sum(map(len, kept.values()))
    for name, text in origin.inputs.items():
        room -= len(name) + len(text)
        if room < 0 or len(inputs) == INPUTS_MAX:
            break
        if not (_path_flaw(name) or _text_flaw(text)):
            inputs[name] = text
    return CaseOrigin(inputs=inputs, **kept)


def _texts(origin: CaseOrigin) -> Iterator[tuple[str, str]]:
    for field in (*_PATHS, _TELLER):
        yield field, getattr(origin, field)


def _chars(origin: CaseOrigin) -> int:
    named = sum(len(name) + len(text) for name, text in origin.inputs.items())
    return named + sum(len(text) for _, text in _texts(origin))


def _path_flaw(text: str) -> str:
    if len(text) > PATH_CHARS_MAX:
        return f"it has {len(text):,} characters, and a path has at most {PATH_CHARS_MAX:,}"
    return "it has a control character, and a path has none" if _CONTROL.search(text) else ""


def _text_flaw(text: str) -> str:
    """What is wrong with the path of an input, or with one of a list of them."""
    if len(text) > ORIGIN_CHARS_MAX or not text.startswith("["):
        return _path_flaw(text)
    try:
        paths = msgspec.json.decode(text, type=list[str])
    except msgspec.DecodeError:
        return _path_flaw(text)
    return next(filter(None, map(_path_flaw, paths)), "")
