"""The program `mendflow`, and `python -m mendflow`: the command line.

The version is told without loading the command line, so that scripts that ask for it do not wait. The pilot of
`mendflow run` is started first, so that it loads beside the command line; a server says first of all that it is coming.
Garbage is not looked for while modules load: they make some hundred thousand objects that all stay, and looking took a
tenth of the start. Nor is it looked for at the end, when the whole memory goes."""

import gc
import importlib
import os
import sys

from mendflow.version import VERSION

GC_YOUNG_MAX = 250_000
"""More objects than loading the command line and a server makes."""


def main() -> None:
    gc.set_threshold(GC_YOUNG_MAX, 20, 100)
    given = sys.argv[1:]
    if given in (["version"], ["--version"]):
        print(f"mendflow {VERSION}")
        return
    if given[:1] == ["run"] and given[1:] and not {"-h", "--help"} & {*given}:
        importlib.import_module("mendflow.pilot.standby").STANDBY.start()
    if given[:1] == ["serve"] and not {"-h", "--help"} & {*given}:
        importlib.import_module("mendflow.cli.starting_server").mark_starting(given[1:], os.environ)
    try:
        importlib.import_module("mendflow.cli.main").main()
    finally:
        gc.freeze()


if __name__ == "__main__":
    main()
