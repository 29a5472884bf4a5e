"""The style sheets of a process, and those that they import, by address.

A missing or invalid one is an error only when it is used, as in BPEL."""

from collections.abc import Iterator
from typing import Final

from mendflow.core.model.errors import BadFlow
from mendflow.core.xml import parse
from mendflow.core.xml.resolver import resolve_path
from mendflow.core.xml.style_sheets import import_elements
from mendflow.formats.bpel.source_files import SourceFiles

SHEETS_MAX: Final = 100


def add_stylesheet(address: str, places: SourceFiles, into: dict[str, str]) -> None:
    """Put the sheet of this address, and what it draws in, among the sheets."""
    wanted = [address]
    while wanted and len(into) < SHEETS_MAX:
        place = wanted.pop()
        if place not in into and (text := places.text(place)) is not None:
            into[place] = text
            wanted.extend(resolve_path(place, each) for each in _included_sheets(text, place))


def _included_sheets(text: str, place: str) -> Iterator[str]:
    try:
        root = parse(text, place)
    except BadFlow:
        return iter(())
    return (node.get("href", "") for node in import_elements(root))
