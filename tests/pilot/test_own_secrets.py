"""A pilot's token came in its environment, and jobs below it can read what a process was started with."""

import os
import subprocess
import sys

from mendflow.pilot.own_secrets import take_secret

READER = """
import os
from pathlib import Path
from mendflow.pilot.options import parse
options = parse(["--server", "http://127.0.0.1:1", "--work", "work"])
print(options.token, os.environ["MENDFLOW_TOKEN"])
print(Path("/proc/self/environ").read_text().replace("\\0", "\\n"))
"""


def test_the_token_that_a_pilot_was_started_with_can_be_read_by_nobody_else() -> None:
    env = {**os.environ, "MENDFLOW_TOKEN": "s3cret-of-this-pilot", "MENDFLOW_OTHER": "seen"}
    ran = subprocess.run([sys.executable, "-c", READER], env=env, capture_output=True, text=True, check=True)
    known, _, shown = ran.stdout.partition("\n")
    assert known == "s3cret-of-this-pilot s3cret-of-this-pilot"
    assert "s3cret" not in shown and "MENDFLOW_OTHER=seen" in shown


def test_a_secret_that_was_not_given_is_empty() -> None:
    assert take_secret("MENDFLOW_NO_SUCH_SECRET") == ""
