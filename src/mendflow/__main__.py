"""The program `mendflow`, and `python -m mendflow`: the command line.

The version is told without loading the command line, so that scripts that ask for it do not wait."""

import importlib
import sys
from importlib.metadata import version


def main() -> None:
    if sys.argv[1:] in (["version"], ["--version"]):
        print(f"mendflow {version('mendflow')}")
        return
    importlib.import_module("mendflow.cli.main").main()


if __name__ == "__main__":
    main()
