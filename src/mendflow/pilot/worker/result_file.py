"""Where the process of a call leaves its result for the worker: a file in memory that only these two have, for this one
call. Whatever the code of a flow writes there is the result of its own call."""

import os
import resource

import msgspec

from mendflow.pilot.slot.messages import FRAME_BYTES_MAX, NIL, CallResult, RawCallResult

_DECODER = msgspec.msgpack.Decoder(RawCallResult)


def write_result(descriptor: int, result: CallResult) -> None:
    """Leave the result. The bound of the job's files is not meant for it."""
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    left = memoryview(msgspec.msgpack.encode(result))
    while left:
        left = left[os.write(descriptor, left) :]


def take_result(descriptor: int, number: int) -> bytes | None:
    """The result of the call of this number, still encoded; None if there is none, or it is not whole. Closes the
    file."""
    try:
        size = os.fstat(descriptor).st_size
        encoded = os.pread(descriptor, size, 0) if 0 < size < FRAME_BYTES_MAX else b""
    finally:
        os.close(descriptor)
    try:
        result = _DECODER.decode(encoded)
    except msgspec.DecodeError:
        return None
    return encoded if result.number == number and bytes(result.outcome) != bytes(NIL) else None
