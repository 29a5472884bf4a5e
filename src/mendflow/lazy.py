"""Modules that are loaded when something of them is first used.

Start-up is a feature: HTTP libraries take longer to load than most commands take to run, and most commands speak no
HTTP. A module that needs such a library at run time names it so, and imports it for type checkers only."""

import importlib
from typing import Any


class LazyModule:
    """Stands for a module, by its name, until an attribute of it is wanted."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        value = getattr(importlib.import_module(self._name), attribute)
        setattr(self, attribute, value)
        return value
