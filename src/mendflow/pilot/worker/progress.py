"""Numbers in shared memory between a slot and its worker: the call that has started, the last that may start, and the
process that runs the present call, if it is not the worker itself.

The worker writes `begun` and then reads `last`. To take calls back, the slot stops the worker, reads `begun` and writes
`last`. Since the worker is stopped meanwhile, each call has either started, and the slot knows it, or never will."""

from mendflow.pilot.slot.shared_numbers import NUMBER_BYTES, map_numbers

_BEGUN, _LAST, _RUNNER = _PLACES = range(3)
NO_LIMIT = (1 << 62) - 1
NUMBERS_BYTES = len(_PLACES) * NUMBER_BYTES


class CallProgress:
    def __init__(self, path: str, *, fresh: bool = False) -> None:
        self.path = path
        self._numbers = map_numbers(path, len(_PLACES))
        if fresh:
            self._numbers[_BEGUN], self._numbers[_LAST], self._numbers[_RUNNER] = 0, NO_LIMIT, 0

    def begin(self, number: int) -> bool:
        """Record that a call starts; False if it may not."""
        self._numbers[_BEGUN] = number
        return number <= self._numbers[_LAST]

    @property
    def begun(self) -> int:
        return self._numbers[_BEGUN]

    def allow_until(self, number: int) -> None:
        self._numbers[_LAST] = number

    def run_in(self, process: int) -> None:
        """Record which process runs the present call; 0: the worker itself, or none."""
        self._numbers[_RUNNER] = process

    def close(self) -> None:
        """Let go of the memory: this process is to run the code of a flow, which has no business there."""
        self._numbers.release()

    @property
    def runner(self) -> int:
        return self._numbers[_RUNNER]
