"""Ids. Each kind is its own type, so that one is never passed in place of another."""

from typing import Final, NewType

CaseId = NewType("CaseId", str)
"""A running instance of a flow, such as `align-7f3k`."""

ItemId = NewType("ItemId", str)
"""One piece of work of one case, unique in its case: `align`, or `align[3]` in the fourth iteration of a loop."""

JobId = NewType("JobId", str)
"""What a pilot executes for an item: the case's id, a slash, the item's serial number: `align-7f3k/12`."""

PilotId = NewType("PilotId", str)
FlowName = NewType("FlowName", str)

Instant = int
"""Milliseconds since 1970, as the server's clock tells them. Durations are plain ints that end in `_ms`."""

ONE_REQUEST: Final = "once-"
"""How a key begins that a client has made up for one request, so that it is carried out once however often it is sent.
32 hexadecimal digits follow: nobody has written it, and it stands for no other flow."""

_ONE_REQUEST_DIGITS: Final = 32


def is_for_one_request(key: str) -> bool:
    digits = key.removeprefix(ONE_REQUEST)
    return digits != key and len(digits) == _ONE_REQUEST_DIGITS and not digits.strip("0123456789abcdef")


def item_name(item: str) -> str:
    """The name of an item without the iterations of its loops: `align` of `align[3]`."""
    return item.partition("[")[0]


def without_item(message: str, item: ItemId | None) -> str:
    """What is said of an item, for a place that names the item: some faults begin with its name."""
    return message.removeprefix(f"{item}: ")


def item_text(item: ItemId, element: str) -> str:
    """An item for people, with the element of its loops that it is for: `clean[2] (s3.txt)`."""
    return f"{item} ({element})" if element and not item.endswith(f"[{element}]") else str(item)
