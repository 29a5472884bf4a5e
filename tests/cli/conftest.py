"""A folder of one's own, and the command line in it, as a person has them."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.in_process import run_command
from tests.patience import PATIENCE_S


class Shell:
    """Runs `mendflow` in one folder. What it starts in the background it ends."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {
            name: value for name, value in os.environ.items() if not name.startswith(("MENDFLOW_", "COLUMNS"))
        }
        self.environment |= {"COLUMNS": "80", "NO_COLOR": "1", "HOME": str(folder)}
        self.started: list[subprocess.Popen[str]] = []

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text)
        return path

    def __call__(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Do a command to its end, in the tests' own process."""
        return run_command(words, folder=self.folder, environment={**self.environment, **environment})

    def apart(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Do a command to its end in a process of its own, where that is what a test is about."""
        return subprocess.run(
            [sys.executable, "-m", "mendflow", *words],
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            env={**self.environment, **environment},
            stdin=subprocess.DEVNULL,
        )

    def ok(self, *words: str, **environment: str) -> str:
        """Standard output of a command that must end well."""
        done = self(*words, **environment)
        assert done.returncode == 0, f"{words} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def json(self, *words: str) -> Any:
        return json.loads(self.ok(*words, "--json"))

    def start(self, *words: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "mendflow", *words],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self.environment,
            start_new_session=True,
        )
        self.started.append(process)
        return process

    def until(self, holds: Callable[[], object]) -> None:
        """Wait for something that another process brings about."""
        give_up_at = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < give_up_at, "it did not come about"
            time.sleep(0.05)

    def close(self) -> None:
        for process in self.started:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(20)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
            if process.stdout is not None:
                process.stdout.close()


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    made = Shell(tmp_path)
    yield made
    made.close()
