"""Two numbers that a slot and its worker share in mapped memory: the call that has begun, and the last that may begin.

The worker writes `begun` and then reads `last`; the slot, to take calls back, stops the worker, reads `begun` and
writes `last`. Since it stands still meanwhile, each call is either begun and known to be, or will never begin."""

import mmap
import os
import struct

_NUMBERS = struct.Struct("=qq")
_ONE = struct.Struct("=q")
NO_LIMIT = (1 << 62) - 1


class CallProgress:
    def __init__(self, path: str, *, fresh: bool = False) -> None:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.ftruncate(descriptor, _NUMBERS.size)
            self._map = mmap.mmap(descriptor, _NUMBERS.size)
        finally:
            os.close(descriptor)
        if fresh:
            _NUMBERS.pack_into(self._map, 0, 0, NO_LIMIT)

    def begin(self, number: int) -> bool:
        """Say that a call begins; False if it may not."""
        _ONE.pack_into(self._map, 0, number)
        return bool(number <= _ONE.unpack_from(self._map, 8)[0])

    @property
    def begun(self) -> int:
        return int(_ONE.unpack_from(self._map, 0)[0])

    def allow_until(self, number: int) -> None:
        _ONE.pack_into(self._map, 8, number)
