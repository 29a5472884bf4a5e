"""How often each kind of fault was injected."""

from collections import Counter


class Counts:
    def __init__(self) -> None:
        self.of: Counter[str] = Counter()

    def add(self, what: str) -> None:
        self.of[what] += 1
