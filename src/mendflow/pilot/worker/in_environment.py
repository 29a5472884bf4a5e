"""Run by the Python of an environment, by its path: `in_environment.py PLACES ARGUMENTS...` is the process of one call.

The environment need not have what a call needs of us. It is found where the pilot has it, after everything that the
environment has itself, and nothing else of the pilot's packages is."""

import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType


class OwnPackages:
    """Finds the pilot's packages by their names."""

    def __init__(self, places: dict[str, str]) -> None:
        self._places = places

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        place = self._places.get(name)
        return PathFinder.find_spec(name, [place], target) if place is not None else None


def main() -> None:
    del sys.path[0]  # the folder of this file, whose modules are nobody's to import
    places = dict(each.split("=", 1) for each in sys.argv.pop(1).split("\n"))
    sys.meta_path.append(OwnPackages(places))
    importlib.import_module("mendflow.pilot.worker.process").main()


if __name__ == "__main__":
    main()
