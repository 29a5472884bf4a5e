"""What cannot be written or read, and what to do instead."""

from typing import Final

ADVICE: Final = (
    "return plain data, a dataclass, a date, bytes, a Path or an array; write anything else to a file, and return its"
    " Path"
)


class BadPythonValue(ValueError):
    """A value that cannot be written, or that cannot be read as what it should be. `place` is where it is inside of
    the whole."""

    def __init__(self, reason: str, place: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.place = place

    def inside(self, step: str) -> "BadPythonValue":
        """The same, seen from the value around it."""
        return BadPythonValue(self.reason, step + self.place)

    def __str__(self) -> str:
        return f"its {self.place} {self.reason}" if self.place else f"it {self.reason}"


def unknown_type(value: object) -> BadPythonValue:
    kind = type(value)
    return BadPythonValue(f"is a {name_of(kind)}, which has no form as data; {ADVICE}")


def name_of(kind: type) -> str:
    """The name of a class, with its module where that says something."""
    module = kind.__module__
    return kind.__qualname__ if module in ("builtins", "__main__") else f"{module}.{kind.__qualname__}"
