"""Modules that are loaded on first use.

Start-up is a feature: HTTP libraries take longer to load than most commands take to run, and most commands do not use
HTTP. A module that needs such a library names it like this, and imports it for type checkers only."""

import importlib
from typing import Any


class LazyModule:
    """Stands for a module, by its name, until one of its attributes is used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        value = getattr(importlib.import_module(self._name), attribute)
        setattr(self, attribute, value)
        return value
