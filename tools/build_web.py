"""Builds the web app: `python tools/build_web.py`. Node and npm are needed for this alone, not by who
installs a wheel.

The files go where the server looks for them, src/mendflow/server/web_files, which wheels carry and git leaves out.
`--types` makes the types of the API's requests and answers anew, from the very description that the server gives.
`--check` says whether those types are of today, and runs the compiler and the tests of the app."""

import argparse
import copy
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src")]

from mendflow.server.app import openapi_description  # noqa: E402 - the package is found beside this folder

WEB = ROOT / "web"
BUILT = ROOT / "src" / "mendflow" / "server" / "web_files"
TYPES = WEB / "src" / "api" / "schema.d.ts"
AS_TYPES = ["--alphabetize", "--empty-objects-unknown", "--default-non-nullable=false"]
STAMP = WEB / "node_modules" / ".lock-installed"
"""A copy of the lock file that node_modules was installed from: as long as it is the same, nothing is installed."""


class CannotBuild(Exception):
    """The web app cannot be built; the message says what to do."""


def run(command: Sequence[str]) -> None:
    done = subprocess.run(command, cwd=WEB)
    if done.returncode:
        raise CannotBuild(f"{' '.join(command)} failed with exit code {done.returncode}; what it printed is above")


def install() -> None:
    """Install what the lock file names, unless it is installed."""
    if shutil.which("npm") is None:
        raise CannotBuild("npm is not on the PATH: install Node.js 20 or later, and try again")
    lock = WEB / "package-lock.json"
    if STAMP.exists() and STAMP.read_bytes() == lock.read_bytes():
        return
    run(["npm", "ci", "--no-audit", "--no-fund"])
    shutil.copyfile(lock, STAMP)


def described_answers() -> dict[str, Any]:
    """The description without the errors, which are the same for every operation, and which the client of the app
    reads in one place."""
    description: dict[str, Any] = copy.deepcopy(openapi_description())
    for path in description["paths"].values():
        for operation in path.values():
            if isinstance(operation, dict):
                answers = operation["responses"]
                operation["responses"] = {status: answer for status, answer in answers.items() if status < "4"}
    _say_what_is_always_there(description)
    return description


def _say_what_is_always_there(description: dict[str, Any]) -> None:
    """A field with a default may be left out of a request. In an answer it is there, unless its type leaves defaults
    out when it is written."""
    schemas = description["components"]["schemas"]
    operations = [each for path in description["paths"].values() for each in path.values() if isinstance(each, dict)]
    asked = _reachable([each.get("requestBody", {}) for each in operations], schemas)
    for name in _reachable([each["responses"] for each in operations], schemas) - asked - _leaving_out_defaults():
        if properties := schemas[name].get("properties"):
            schemas[name]["required"] = sorted(properties)


def _reachable(parts: list[Any], schemas: dict[str, Any]) -> set[str]:
    found: set[str] = set()
    while parts:
        part = parts.pop()
        if isinstance(part, list):
            parts += part
        elif isinstance(part, dict):
            name = str(part.get("$ref", "")).rpartition("/")[2]
            if name and name not in found:
                found.add(name)
                parts.append(schemas[name])
            parts += part.values()
    return found


def _leaving_out_defaults() -> set[str]:
    names, kinds = set(), [msgspec.Struct]
    while kinds:
        kind = kinds.pop()
        kinds += kind.__subclasses__()
        if kind.__struct_config__.omit_defaults:
            names.add(kind.__name__)
    return names


def types_text() -> str:
    """The types, as TypeScript."""
    with tempfile.TemporaryDirectory() as folder:
        described, made = Path(folder) / "openapi.json", Path(folder) / "schema.d.ts"
        described.write_text(json.dumps(described_answers()))
        run(["npx", "--no-install", "openapi-typescript", str(described), *AS_TYPES, "--output", str(made)])
        return made.read_text()


def check() -> None:
    if types_text() != TYPES.read_text():
        raise CannotBuild("web/src/api/schema.d.ts is not what the API is now: run python tools/build_web.py --types")
    run(["npx", "--no-install", "tsc", "--noEmit"])
    run(["npx", "--no-install", "vitest", "run"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--types", action="store_true", help="make web/src/api/schema.d.ts anew, and build nothing")
    parser.add_argument("--check", action="store_true", help="check types and run the app's tests, and build nothing")
    wish = parser.parse_args()
    try:
        install()
        if wish.types:
            TYPES.write_text(types_text())
        elif wish.check:
            check()
        else:
            run(["npx", "--no-install", "tsc", "--noEmit"])
            run(["npx", "--no-install", "vite", "build"])
            print(f"built into {BUILT.relative_to(ROOT)}")
    except CannotBuild as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
