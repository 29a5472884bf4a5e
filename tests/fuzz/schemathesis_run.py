"""One run of Schemathesis against a server: its configuration, its process, and what it counted."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from tests.fuzz.furnish import Furnished
from tests.fuzz.hooks import COUNTS
from tests.servers.processes import dying_with_us

ROOT: Final = Path(__file__).parents[2]
SEED: Final = 20261117
REQUEST_S: Final = 60
STREAM_S: Final = 3
"""After so long a stream of events is left."""
RUN_S: Final = 1800
_SCHEMAS: Final = "#/components/schemas/"

Json = dict[str, Any]


@dataclass(frozen=True)
class FuzzResult:
    """`code` is 0 if nothing was found. `answers` counts by operation and status."""

    code: int
    said: str
    answers: Counter[tuple[str, int]]

    @property
    def requests(self) -> int:
        return sum(self.answers.values())

    @property
    def reached(self) -> set[str]:
        """The operations that did what they were asked for at least once."""
        return {operation for operation, status in self.answers if 200 <= status < 300}

    def by_status(self) -> dict[int, int]:
        found: Counter[int] = Counter()
        for (_, status), count in self.answers.items():
            found[status] += count
        return dict(sorted(found.items()))


def fuzz(
    url: str, token: str, furnished: Furnished, folder: Path, *, phases: str, examples: int, description: Json
) -> FuzzResult:
    folder.mkdir()
    config, counts = folder / "schemathesis.toml", folder / "counts.json"
    config.write_text(_config(furnished, examples, endless_operations(description)))
    words = ["--config-file", str(config), "run", f"{url}/api/v1/openapi.json", "--checks", "all", "--phases", phases]
    done = subprocess.run(
        [
            *dying_with_us(),
            sys.executable,
            "-m",
            "schemathesis.cli",
            *words,
            "--header",
            f"Authorization: Bearer {token}",
        ],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), COUNTS: str(counts), "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=RUN_S,
        check=False,
    )
    told = json.loads(counts.read_text()) if counts.exists() else {}
    pairs = {key.rpartition(" "): number for key, number in told.items()}
    answers = Counter({(operation, int(status)): number for (operation, _, status), number in pairs.items()})
    return FuzzResult(done.returncode, done.stdout, answers)


def endless_operations(description: Json) -> list[str]:
    """The operations whose bodies can stand in themselves, as flows and rules can. To draw by chance a body that does
    not fit takes minutes there; those that cover such an operation are made otherwise, and quickly."""
    schemas = description["components"]["schemas"]
    inside = {name: set(_named_in(schema)) for name, schema in schemas.items()}
    found = []
    for path in description["paths"].values():
        for operation in path.values():
            below = _closure(set(_named_in(operation.get("requestBody", {}))), inside)
            if any(name in _closure(inside[name], inside) for name in below):
                found.append(operation["operationId"])
    return found


def _closure(names: set[str], inside: Mapping[str, set[str]]) -> set[str]:
    found, wave = set(names), set(names)
    while wave:
        wave = {below for name in wave for below in inside[name]} - found
        found |= wave
    return found


def _named_in(schema: Any) -> Iterator[str]:
    if isinstance(schema, list):
        for one in schema:
            yield from _named_in(one)
    elif isinstance(schema, dict):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"].removeprefix(_SCHEMAS)
        for one in schema.values():
            yield from _named_in(one)


def _config(furnished: Furnished, examples: int, endless: list[str]) -> str:
    lines = [
        f"seed = {SEED}",
        "workers = 1",
        f"request-timeout = {REQUEST_S}",
        "max-stream-events = 2",
        "continue-on-failure = true",
        'hooks = "tests.fuzz.hooks"',
        'suppress-health-check = ["all"]',
        "[cache]",
        "enabled = false",
        "[generation]",
        f"max-examples = {examples}",
        'database = "none"',
        "no-shrink = true",
        "[checks.positive_data_acceptance]",
        'expected-statuses = ["2xx", "400", "401", "403", "404", "409", "413", "422", "429", "503"]',
        "[[operations]]",
        f"include-operation-id = {json.dumps(endless)}",
        "[operations.generation]",
        'mode = "positive"',
        "[[operations]]",
        'include-operation-id = ["case_events", "all_events"]',
        f"request-timeout = {STREAM_S}",
        "[operations.generation]",
        "max-examples = 2",
        "[dictionaries]",
    ]
    kinds = asdict(furnished)
    lines += [f"{kind} = {{ values = {json.dumps(values)} }}" for kind, values in kinds.items()]
    lines.append("[parameters]")
    lines += [f'"path.{kind}" = {{ dictionary = "{kind}", probability = 0.6 }}' for kind in kinds]
    return "\n".join(lines) + "\n"
