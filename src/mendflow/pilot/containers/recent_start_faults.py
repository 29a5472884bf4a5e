"""What a pilot has lately seen of a machine that does not start containers; what each fault is, says `start_faults`.

A fault that is known to last, and is not due to what one job asks for, is remembered for a moment: meanwhile jobs with
containers are told it without asking the program again. Of a fault of which that is not known, three in a row, with no
container started between them, count as lasting too; those of jobs that ask for options, mounts or a network of their
own say nothing of the machine, and are not counted. So no job is tried again and again where no container starts, and
other machines can have it."""

import time
from collections.abc import Callable
from typing import Final

import msgspec

from mendflow.core.model.faults import Fault
from mendflow.core.model.jobs import Outcome
from mendflow.pilot.containers.start_faults import NOT_STARTED

REMEMBERED_S: Final = 30.0
IN_A_ROW: Final = 3


class RecentStartFaults:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last: Fault | None = None
        self._until = 0.0
        self._in_a_row = 0

    def refusal(self) -> Fault | None:
        """Why no container starts here, if that was seen a moment ago."""
        return self._last if self._last is not None and self._clock() < self._until else None

    def judged(self, outcome: msgspec.Raw) -> msgspec.Raw:
        """The outcome of an attempt that was given a container, with what others of this pilot add to it."""
        seen = msgspec.msgpack.decode(outcome, type=Outcome)
        fault = seen.fault
        if fault is None or fault.name != NOT_STARTED:
            self._in_a_row, self._last = 0, None
            return outcome
        data = fault.data if isinstance(fault.data, dict) else {}
        if not data.get("of_all", not fault.lasting):
            return outcome  # what this job alone asks for
        self._in_a_row += 1
        if fault.lasting:
            self._last, self._until = fault, self._clock() + REMEMBERED_S
            return outcome
        if self._in_a_row < IN_A_ROW:
            return outcome
        text = f"{fault.message} (no container has started here lately: {self._in_a_row} in a row)"
        lasting = msgspec.structs.replace(fault, message=text, data={**data, "lasting": True})
        return msgspec.Raw(msgspec.msgpack.encode(msgspec.structs.replace(seen, fault=lasting)))
