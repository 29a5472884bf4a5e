"""The commands, each in a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.patience import PATIENCE_S


class CommandLine:
    """`mendflow` in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._environment = {name: value for name, value in os.environ.items() if not name.startswith("MENDFLOW_")}
        self._environment |= {"NO_COLOR": "1", "HOME": str(folder)}
        self.started: list[subprocess.Popen[str]] = []

    def start(self, *words: str) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-m", "mendflow", *words],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self._environment,
        )
        self.started.append(process)
        return process

    def json(self, *words: str) -> Any:
        process = self.start(*words, "--json")
        out, _ = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, out
        return json.loads(out)
