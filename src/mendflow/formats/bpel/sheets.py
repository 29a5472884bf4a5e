"""The style sheets that a process transforms with, and those that they draw in, by their addresses.

One that is not there, or is none, is missed only when it is asked for, as BPEL has it."""

from collections.abc import Iterator
from typing import Final

from mendflow.core.model.problems import BadFlow
from mendflow.core.xml import parse
from mendflow.core.xml.offline import beside
from mendflow.core.xml.sheets import imported
from mendflow.formats.bpel.places import Places

SHEETS_MAX: Final = 100


def bring(address: str, places: Places, into: dict[str, str]) -> None:
    """Put the sheet of this address, and what it draws in, among the sheets."""
    wanted = [address]
    while wanted and len(into) < SHEETS_MAX:
        place = wanted.pop()
        if place not in into and (text := places.text(place)) is not None:
            into[place] = text
            wanted.extend(beside(place, each) for each in _drawn_in(text, place))


def _drawn_in(text: str, place: str) -> Iterator[str]:
    try:
        root = parse(text, place)
    except BadFlow:
        return iter(())
    return (node.get("href", "") for node in imported(root))
