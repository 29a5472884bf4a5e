"""Somebody who runs an example in a folder of their own, by commands."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.patience import PATIENCE_S


class Analyst:
    def __init__(self, folder: Path, example: Path) -> None:
        self.folder = folder
        shutil.copytree(example, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        self._environment = {name: value for name, value in os.environ.items() if not name.startswith("MENDFLOW_")}
        self._environment |= {"HOME": str(folder), "NO_COLOR": "1", "MPLBACKEND": "Agg"}

    def start(self, *words: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, *words],
            cwd=self.folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def do(self, *words: str) -> str:
        process = self.start(*words)
        told, _ = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, told
        return told

    def mendflow(self, *words: str) -> str:
        return self.do("-m", "mendflow", *words)

    def items(self) -> list[dict[str, Any]]:
        """The items of the newest case."""
        found: list[dict[str, Any]] = json.loads(self.mendflow("items", "last", "--json"))
        return found

    @staticmethod
    def told(process: "subprocess.Popen[str]") -> str:
        """The next line of a command."""
        assert process.stdout is not None
        return process.stdout.readline()
