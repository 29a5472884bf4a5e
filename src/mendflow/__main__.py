"""The program `mendflow`, and `python -m mendflow`: the command line.

The version is told without loading the command line, so that scripts that ask for it do not wait. The pilot of
`mendflow run` is started first, so that it loads beside the command line. Garbage is looked for less often than Python
does by default: loading some hundred modules makes very many objects that stay, which took a tenth of the start."""

import gc
import importlib
import sys

from mendflow.version import VERSION

GC_YOUNG_MAX = 50_000


def main() -> None:
    gc.set_threshold(GC_YOUNG_MAX, 20, 100)
    given = sys.argv[1:]
    if given in (["version"], ["--version"]):
        print(f"mendflow {VERSION}")
        return
    if given[:1] == ["run"] and given[1:] and not {"-h", "--help"} & {*given}:
        importlib.import_module("mendflow.pilot.standby").STANDBY.start()
    importlib.import_module("mendflow.cli.main").main()


if __name__ == "__main__":
    main()
