"""Write the lock files again from pyproject.toml: `python3 tools/lock.py`, with uv on the path.

One resolution holds for every platform. `dev` has everything; `run` and `build` are shares of it, at its versions.
`install` is what the environment is made with, `peers` what bench compares with; they have nothing to do with the
others."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON = "3.11"
COMMAND = "python3 tools/lock.py"


def main(arguments: Sequence[str]) -> int:
    """Resolve. With `--upgrade` take the newest versions, otherwise keep what still fits."""
    upgrade = ["--upgrade"] if "--upgrade" in arguments else []
    build = "requirements/build.in"
    _compile("dev", ["pyproject.toml", build, "--extra", "dev", *upgrade])
    _compile("run", ["pyproject.toml", "--constraint", "requirements/dev.lock"])
    _compile("build", [build, "--constraint", "requirements/dev.lock"])
    _compile("install", ["requirements/install.in", *upgrade])
    _compile("peers", ["requirements/peers.in", *upgrade])
    return 0


def _compile(name: str, sources: Sequence[str]) -> None:
    options = ["--universal", "--generate-hashes", "--python-version", PYTHON, "--no-emit-index-url", "--quiet"]
    told = ["--custom-compile-command", COMMAND, "--no-annotate"]
    command = ["uv", "pip", "compile", *sources, *options, *told, "--output-file", f"requirements/{name}.lock"]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
