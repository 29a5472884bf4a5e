"""Pages that run. The blocks of a page are read in order and done in one folder, as a reader would do them.

    console   each `$ ` line is given to one bash that lives as long as the page. Lines under it are what it must
              print; `...` in a line stands for any text, a line of only `...` for any lines. A command must end with
              0, unless the next one is `$ echo $?`. A line that ends in a backslash goes on in the next.
    yaml      with a first line `# file: NAME` it becomes that file; `yaml fragment` must be YAML; any other must pass
              `mendflow check`.
    python    with a first line `# file: NAME` it becomes that file; any other is run.
    json      must be JSON; with `file=NAME` in the fence it becomes that file.
    xml       must be XML; the same.
    text      is for reading only.

`norun: REASON` in the fence leaves a block to its reader, and wants the reason."""

import json
import os
import re
import selectors
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import yaml

from mendflow.core.xml import parse
from tests.cli.in_process import run_command
from tests.servers.warm_shell import BASH, WarmShell

FENCE = re.compile(r"^( *)```(.*)$")
NAMED = re.compile(r"^# file: (\S+)$")
LANGUAGES = frozenset({"console", "yaml", "python", "json", "xml", "text"})
ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Block(NamedTuple):
    language: str
    info: str
    text: str
    line: int

    @property
    def file(self) -> str:
        first = NAMED.match(self.text.split("\n", 1)[0])
        in_fence = re.search(r"\bfile=(\S+)", self.info)
        return first[1] if first else in_fence[1] if in_fence else ""

    @property
    def norun(self) -> str:
        """The reason why the block is not run, or nothing."""
        said = re.search(r"\bnorun\b:?\s*(.*)$", self.info)
        if said is None:
            return ""
        assert len(said[1]) > 10, f"line {self.line}: say after `norun:` why this block is not run"
        return said[1]


class Step(NamedTuple):
    command: str
    expected: list[str]
    line: int


def blocks(text: str) -> list[Block]:
    """Every fenced block of a page."""
    found: list[Block] = []
    opened: tuple[str, int] | None = None
    body: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        fence = FENCE.match(line)
        if opened is None and fence:
            opened, body = (fence[2].strip(), number), []
        elif opened is not None and fence and not fence[2].strip():
            language, _, info = opened[0].partition(" ")
            found.append(Block(language, info.strip(), "\n".join(body), opened[1]))
            opened = None
        elif opened is not None:
            body.append(line)
    assert opened is None, f"line {opened[1]}: this block is not closed"
    return found


def steps(block: Block) -> list[Step]:
    """The commands of a console block, each with the lines that it must print."""
    found: list[Step] = []
    going_on = False
    for number, line in enumerate(block.text.splitlines(), start=block.line + 1):
        if going_on:
            last = found[-1]
            found[-1] = Step(last.command + "\n" + line.removeprefix("> "), [], last.line)
        elif line.startswith("$ "):
            found.append(Step(line[2:], [], number))
        else:
            assert found, f"line {number}: a console block begins with a `$ ` line"
            found[-1].expected.append(line)
        going_on = (going_on or line.startswith("$ ")) and line.endswith("\\")
    return found


def agrees(expected: list[str], printed: str) -> bool:
    """Whether what was printed is what the page shows."""
    shown = [line.rstrip() for line in expected]
    while shown and not shown[-1]:
        shown.pop()
    if not shown:
        return True
    parts = [r"(?:.*\n)*?" if line.strip() == "..." else _line_pattern(line) for line in shown]
    text = "".join(line.rstrip() + "\n" for line in ANSI.sub("", printed).strip("\n").splitlines())
    return re.fullmatch("".join(parts), text) is not None


def _line_pattern(line: str) -> str:
    return r".*?".join(re.escape(part) for part in line.split("...")) + r"\n"


def _text(data: bytes) -> str:
    return data.decode(errors="replace")


class Stuck(Exception):
    """A command that did not end in time."""


class Shell:
    """One bash for one page. Commands see what earlier ones left: folders, variables, jobs in the background. That of
    a warm page forks `mendflow` (tests/servers/warm_shell.py)."""

    def __init__(self, folder: Path, environ: dict[str, str], *, warm: bool) -> None:
        self._folder = folder
        self._given = folder.parent / f"{folder.name}-commands"
        self._given.mkdir()
        self._count = 0
        self._bash = (
            WarmShell(folder, environ, folder.parent / f"{folder.name}-program")
            if warm
            else subprocess.Popen(
                BASH,
                cwd=folder,
                env=environ,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        )

    def run(self, command: str, timeout_s: float) -> tuple[int, str]:
        """Give one command; wait for its end; give its exit code and what was printed meanwhile."""
        self._count += 1
        script = self._given / f"{self._count}.sh"
        script.write_text(command + "\n")
        mark = f"--end-of-command-{self._count}--"
        line = f'. {shlex.quote(str(script))} </dev/null; __c=$?; printf "\\n%s %s\\n" {mark} $__c; (exit $__c)\n'
        assert self._bash.stdin is not None
        self._bash.stdin.write(line.encode())
        self._bash.stdin.flush()
        return self._read_to(mark, timeout_s)

    def _read_to(self, mark: str, timeout_s: float) -> tuple[int, str]:
        assert self._bash.stdout is not None
        end = time.monotonic() + timeout_s
        seen = b""
        ended = re.compile(rf"\n{mark} (\d+)\n".encode())
        with selectors.DefaultSelector() as selector:
            selector.register(self._bash.stdout, selectors.EVENT_READ)
            while not (found := ended.search(seen)):
                left = end - time.monotonic()
                chunk = os.read(self._bash.stdout.fileno(), 65536) if left > 0 and selector.select(left) else b""
                if not chunk:
                    raise Stuck(f"no end after {timeout_s:.0f} s, or the shell ended; it printed:\n{_text(seen)}")
                seen += chunk
        return int(found[1]), _text(seen[: found.start()])

    def close(self) -> None:
        """End everything that the page started: asked first, so that servers and pilots stop their own children."""
        for sent, patience_s in ((signal.SIGTERM, 5.0), (signal.SIGKILL, 5.0)):
            try:
                os.killpg(self._bash.pid, sent)
            except ProcessLookupError:
                break
            if self._bash.stdin is not None and not self._bash.stdin.closed:
                self._bash.stdin.close()
            if self._ended(patience_s):
                break
        self._bash.wait()
        if self._bash.stdout is not None:
            self._bash.stdout.close()

    def _ended(self, patience_s: float) -> bool:
        """Whether nobody of the group is left. The group's leader must be collected before it counts as gone."""
        end = time.monotonic() + patience_s
        while time.monotonic() < end:
            self._bash.poll()
            try:
                os.killpg(self._bash.pid, 0)
            except ProcessLookupError:
                return True
            time.sleep(0.05)
        return False


class Page:
    """Does the blocks of one page in a folder of its own."""

    def __init__(
        self,
        name: str,
        text: str,
        folder: Path,
        environ: dict[str, str],
        timeout_s: float = 90,
        *,
        warm: bool = False,
    ) -> None:
        self._name = name
        self._blocks = blocks(text)
        self._folder = folder
        self._environ = environ
        self._timeout_s = timeout_s
        self._shell = Shell(folder, environ, warm=warm)

    def run(self) -> None:
        try:
            for block in self._blocks:
                assert block.language in LANGUAGES, self._at(block.line, f"no such kind of block: {block.language!r}")
                if not block.norun:
                    getattr(self, f"_{block.language}")(block)
        finally:
            self._shell.close()

    def _at(self, line: int, message: str) -> str:
        return f"{self._name}:{line}: {message}"

    def _give(self, command: str, line: int) -> tuple[int, str]:
        try:
            return self._shell.run(command, self._timeout_s)
        except Stuck as stuck:
            raise AssertionError(self._at(line, f"{command}\n{stuck}")) from stuck

    def _command(self, command: str, line: int) -> None:
        code, printed = self._give(command, line)
        assert code == 0, self._at(line, f"ended with {code}: {command}\n{printed}")

    def _console(self, block: Block) -> None:
        todo = steps(block)
        for step, following in zip(todo, [*todo[1:], None], strict=True):
            code, printed = self._give(step.command, step.line)
            may_fail = following is not None and following.command == "echo $?"
            assert code == 0 or may_fail, self._at(step.line, f"ended with {code}: {step.command}\n{printed}")
            wanted = "\n".join(step.expected)
            assert agrees(step.expected, printed), self._at(
                step.line, f"{step.command}\n--- printed\n{printed}\n--- where the page shows\n{wanted}"
            )

    def _put(self, block: Block) -> None:
        path = self._folder / block.file
        assert path.resolve().is_relative_to(self._folder.resolve()), self._at(
            block.line, "the file is outside the folder"
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text + "\n")

    def _yaml(self, block: Block) -> None:
        if block.file:
            self._put(block)
        elif "fragment" in block.info.split():
            yaml.safe_load(block.text)
        else:
            unnamed = self._folder / f"line-{block.line}.yaml"
            unnamed.write_text(block.text + "\n")
            done = run_command(["check", unnamed.name], folder=self._folder, environment=self._environ)
            assert done.returncode == 0, self._at(block.line, f"mendflow check: {done.stdout}{done.stderr}")
            unnamed.unlink()

    def _python(self, block: Block) -> None:
        if block.file:
            self._put(block)
            return
        unnamed = self._folder / f"line_{block.line}.py"
        unnamed.write_text(block.text + "\n")
        self._command(f"{shlex.quote(sys.executable)} {unnamed.name}", block.line)
        unnamed.unlink()

    def _json(self, block: Block) -> None:
        json.loads(block.text)
        if block.file:
            self._put(block)

    def _xml(self, block: Block) -> None:
        parse(block.text, self._name)
        if block.file:
            self._put(block)

    def _text(self, block: Block) -> None:
        """Nothing to do: it is for reading."""
