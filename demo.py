"""See it at work: `python3 demo.py` runs a flow whose jobs fail, and shows how it ends well all the same.

Makes `.venv` from the locked dependencies, as check.py does, then does what `mendflow run examples/night.yaml` does.
Whatever is given after the command goes to `mendflow` in place of that."""

import os
import subprocess
import sys
from collections.abc import Sequence

from tools.environment import NotPrepared, prepare

DEMO = ["run", "examples/night.yaml"]


def main(arguments: Sequence[str]) -> int:
    print("Preparing .venv (the first time takes a little) ...", flush=True)
    try:
        programs = prepare("build", "run")
    except NotPrepared as problem:
        print(problem, file=sys.stderr)
        return 1
    command = [str(programs / "mendflow"), *(arguments or DEMO)]
    path = f"{programs}{os.pathsep}{os.environ.get('PATH', '')}"
    try:
        return subprocess.run(command, env={**os.environ, "PATH": path}, check=False).returncode
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
