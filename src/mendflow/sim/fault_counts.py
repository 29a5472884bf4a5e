"""How often each kind of fault was injected."""

from collections import Counter


class FaultCounts:
    def __init__(self) -> None:
        self.of: Counter[str] = Counter()

    def add(self, what: str) -> None:
        self.of[what] += 1
