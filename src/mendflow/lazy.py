"""Modules and patterns that are made on first use.

Start-up is a feature: HTTP libraries take longer to load than most commands take to run, and most commands do not use
HTTP. A module that needs such a library names it like this, and imports it for type checkers only. Patterns are the
same: a command compiles the few that it uses, and not the two hundred of the modules that it loads."""

import importlib
import re
from typing import Any, AnyStr, Generic, cast


class LazyModule:
    """Stands for a module, by its name, until one of its attributes is used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        value = getattr(importlib.import_module(self._name), attribute)
        setattr(self, attribute, value)
        return value


class LazyPattern(Generic[AnyStr]):
    """Stands for a pattern until it is used. It keeps the methods that were asked for, so that later calls cost what
    they cost with the pattern itself."""

    def __init__(self, pattern: AnyStr, flags: int = 0) -> None:
        self.pattern: AnyStr = pattern
        self._flags = flags

    def __getattr__(self, attribute: str) -> Any:
        value = getattr(re.compile(self.pattern, self._flags), attribute)
        setattr(self, attribute, value)
        return value


def lazy_pattern(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """The pattern, compiled on first use. A mistake in it shows only then: tests/core/test_lazy.py compiles all."""
    return cast(re.Pattern[AnyStr], LazyPattern(pattern, flags))
