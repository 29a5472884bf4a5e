"""A span in plain values, independent of the export protocol."""

import msgspec

from mendflow.core.model.faults import Fault
from mendflow.core.model.ids import Instant

Attribute = str | int | bool


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """`parent` is empty for the root of a trace; `links` are other spans of the same trace. `error` is the error
    message, if there was an error."""

    trace: bytes
    id: bytes
    name: str
    start: Instant
    end: Instant
    parent: bytes = b""
    links: tuple[bytes, ...] = ()
    attributes: dict[str, Attribute] = {}
    error: str = ""


def fault_attributes(fault: Fault | None, exit_code: int | None = None) -> dict[str, Attribute]:
    """The attributes of a span for a fault, and for the exit code where there is one."""
    attributes: dict[str, Attribute] = {}
    if fault is not None:
        attributes = {"mendflow.fault.name": fault.name, "mendflow.fault.category": fault.category.value}
        exit_code = exit_code if exit_code is not None else fault.exit_code
    return attributes if exit_code is None else {**attributes, "mendflow.exit_code": exit_code}
