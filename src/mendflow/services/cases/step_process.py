"""The process that does long steps of cases: it reads a case and an event, and writes what comes of them, until its
input ends, as it does when the server has ended. It gives way to everything else on the machine."""

import os
import resource
import sys
from typing import BinaryIO, Final

import msgspec

from mendflow.core.engine import Case, evolve, evolve_new, snapshot
from mendflow.core.engine.messages import Event
from mendflow.core.engine.state import restore
from mendflow.services.cases.long_steps import LENGTH_BYTES, StepResult, StepTask

NICENESS: Final = 10
MEMORY_BYTES_MAX: Final = 4 << 30

_decode_event: Final = msgspec.json.Decoder(Event).decode


def main() -> None:
    os.nice(NICENESS)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, resource.getrlimit(resource.RLIMIT_AS)[1]))
    serve(sys.stdin.buffer, sys.stdout.buffer)


def serve(source: BinaryIO, target: BinaryIO) -> None:
    decode = msgspec.msgpack.Decoder(StepTask).decode
    encode = msgspec.msgpack.Encoder().encode
    while length := source.read(LENGTH_BYTES):
        answer = encode(apply(decode(source.read(int.from_bytes(length, "big")))))
        target.write(len(answer).to_bytes(LENGTH_BYTES, "big"))
        target.write(answer)
        target.flush()


def apply(task: StepTask) -> StepResult:
    try:
        case = restore(task.state) if task.state else Case.blank()
        for entry in task.entries:
            evolve(case, _decode_event(entry))
        event, orders = evolve_new(case, task.event) if task.event is not None else (None, [])
    except Exception as error:  # noqa: BLE001 - a case that cannot continue must not affect the others
        return StepResult(problem=f"{error!r:.300}")
    return StepResult(snapshot(case), event, orders, case.meter.work)


if __name__ == "__main__":
    main()
