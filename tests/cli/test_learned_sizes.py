"""`memory: auto`, and `mendflow learn sizes`, as a person uses them."""

import json
import re
import subprocess
import sys

import pytest

from tests.cli.conftest import Shell

FLOW = """\
name: grow
jobs:
  eat:
    for-each: {{mb: {sizes}}}
    memory: auto up to 600 MB
    time: auto
    run: python3 -c "import time; block = bytes([1]) * ${{{{ mb }}}}_000_000; time.sleep(0.5)"
"""


@pytest.mark.full
def test_memory_is_found_by_itself_and_raised_where_it_was_too_little(shell: Shell) -> None:  # LE-2
    shell.write("grow.yaml", FLOW.format(sizes=[100] * 6))
    shell.ok("run", "grow.yaml", "--quiet")
    asked = [job["spec"]["resources"]["memory_bytes"] for job in shell.json("jobs", "--order", "created")]
    assert max(asked) > 450_000_000 and 100_000_000 < min(asked) < 250_000_000
    [view] = shell.json("learn", "sizes")
    assert view["jobs"] == 6 and 100_000_000 <= view["memory_used_bytes"] < 200_000_000
    assert "asks for" in shell.ok("jobs", COLUMNS="160")
    assert "of memory: the most that the last" in shell.ok("why", "last:eat[5]")
    shell.write("grow.yaml", FLOW.format(sizes=[100, 400]))
    told = shell.ok("run", "grow.yaml", "--quiet")
    assert "more-memory (rule 8 of the default rules): 1 recovered" in told
    table = shell.ok("learn", "sizes", COLUMNS="160")
    assert "would ask" in table and "grow" in table and "GBh" in table


def replayed(shell: Shell, text: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mendflow", "learn", "sizes", "--replay"]
    return subprocess.run(command, cwd=shell.folder, input=text, capture_output=True, text=True, env=shell.environment)


@pytest.mark.full
def test_a_trace_is_replayed_over_standard_input(shell: Shell) -> None:  # LE-2
    ask = {"id": 1, "task": "a", "input_bytes": 1, "requested_bytes": 8_000_000_000, "cpus": 1, "attempt": 1}
    over = {**ask, "peak_bytes": 1_000_000_000, "runtime_ms": 60_000}
    lines = [{"ask": {**ask, "last_bytes": None}}, *[{"over": over}] * 3, {"ask": {**ask, "last_bytes": None}}]
    lines.append({"ask": {**ask, "attempt": 2, "last_bytes": 2_000_000_000}})
    done = replayed(shell, "".join(json.dumps(line) + "\n" for line in lines))
    assert done.returncode == 0, done.stderr
    first, second, third = (json.loads(line)["bytes"] for line in done.stdout.splitlines())
    assert first == 6_000_000_000 and 1_000_000_000 < second < 1_300_000_000 and third == 5_000_000_001
    refused = replayed(shell, '{"ask": 3}\n')
    assert refused.returncode != 0 and "line 1 of standard input is not understood" in refused.stderr


def test_the_report_of_a_study_of_seconds_tells_seconds(shell: Shell) -> None:
    shell.write(
        "short.yaml", "jobs:\n  a: {run: sleep 0.3, memory: 100 MB}\n  b: {run: 'sleep 0.2; exit 3', retries: 0}\n"
    )
    assert shell("run", "short.yaml", "--quiet").returncode == 1
    told = shell.ok("learn", "report", "--recount", COLUMNS="160")
    assert re.search(r"useful: [\d.]+ m?s, [\d.]+ GB s", told), told
    assert re.search(r"lost to failed attempts: [1-9][\d.]* m?s", told), told
