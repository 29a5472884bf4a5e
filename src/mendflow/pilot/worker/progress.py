"""Numbers in shared memory between a slot and its worker: the call that has started, the last that may start, and the
process that runs the present call, if it is not the worker itself.

The worker writes `begun` and then reads `last`. To take calls back, the slot stops the worker, reads `begun` and writes
`last`. Since the worker is stopped meanwhile, each call has either started, and the slot knows it, or never will."""

import mmap
import os
import struct

_NUMBERS = struct.Struct("=qqq")
_ONE = struct.Struct("=q")
_BEGUN, _LAST, _RUNNER = (place * _ONE.size for place in range(3))
NO_LIMIT = (1 << 62) - 1
NUMBERS_BYTES = _NUMBERS.size


class CallProgress:
    def __init__(self, path: str, *, fresh: bool = False) -> None:
        self.path = path
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.ftruncate(descriptor, _NUMBERS.size)
            self._map = mmap.mmap(descriptor, _NUMBERS.size)
        finally:
            os.close(descriptor)
        if fresh:
            _NUMBERS.pack_into(self._map, 0, 0, NO_LIMIT, 0)

    def begin(self, number: int) -> bool:
        """Record that a call starts; False if it may not."""
        _ONE.pack_into(self._map, _BEGUN, number)
        return bool(number <= _ONE.unpack_from(self._map, _LAST)[0])

    @property
    def begun(self) -> int:
        return self._at(_BEGUN)

    def allow_until(self, number: int) -> None:
        _ONE.pack_into(self._map, _LAST, number)

    def run_in(self, process: int) -> None:
        """Record which process runs the present call; 0: the worker itself, or none."""
        _ONE.pack_into(self._map, _RUNNER, process)

    def close(self) -> None:
        """Let go of the memory: this process is to run the code of a flow, which has no business there."""
        self._map.close()

    @property
    def runner(self) -> int:
        return self._at(_RUNNER)

    def _at(self, place: int) -> int:
        return int(_ONE.unpack_from(self._map, place)[0])
