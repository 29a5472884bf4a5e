"""What a slot starts for a job's command: a shell with the script as an argument, or a program with the script's file.

Where the usual shell is was found out once for the slot; only what a template names is looked for when its job begins,
since the job may have a PATH of its own."""

import os
import re
import shutil
import sys
from collections.abc import Mapping
from typing import Final, NamedTuple

from mendflow.core.model.faults import AttemptStage, Category, Fault
from mendflow.core.model.jobs import Limits
from mendflow.core.model.shells import DEFAULT_SHELL, OPTIONS, template_words
from mendflow.lazy import lazy_pattern
from mendflow.pilot.slot.exit_hints import host_name
from mendflow.pilot.slot.limits import shell_limits

SHELL: Final = "/bin/sh"
COMMAND_BYTES_MAX: Final = 100_000
NOT_FOUND: Final = 127
"""What a shell ends with that does not find a program."""

PLAIN_WORDS: Final = lazy_pattern(r"[A-Za-z0-9_./:,+@%-]+(?: [A-Za-z0-9_./:,+@%=-]+)*", re.ASCII)
BUILT_IN: Final = lazy_pattern(
    r"alias|bg|bind|break|builtin|caller|case|cd|command|compgen|complete|compopt|continue|coproc|declare|dirs|disown"
    r"|do|done|echo|elif|else|enable|esac|eval|exec|export|fc|fg|fi|for|function|getopts|hash|help|history|if|in|jobs"
    r"|kill|let|local|logout|mapfile|popd|printf|pushd|pwd|read|readarray|readonly|return|select|set|shift|shopt"
    r"|source|suspend|test|then|time|times|trap|type|typeset|ulimit|umask|unalias|unset|until|wait|while|\."
)
"""What bash does itself, and another shell not at all or otherwise. Both do `true`, `false`, `:` and `exit` alike."""


class ShellNotFound(Exception):
    """The program that the job's script is written for is not on this machine."""

    def __init__(self, shell: str, program: str) -> None:
        text = (
            f"its shell `{shell}` cannot be started: there is no `{program}` on the PATH of this pilot (host"
            f" {host_name()}): install it there, or choose another `shell`"
        )
        super().__init__(text)
        self.fault = Fault(
            name="exitCode",
            category=Category.JOB,
            message=text,
            exit_code=NOT_FOUND,
            stage=AttemptStage.START,
            data={"program": program},
        )


class ProcessStart(NamedTuple):
    """The program and its arguments, and whether they name the script's file, which then must be written."""

    program: str
    arguments: list[str]
    from_file: bool = False


def find_bash() -> str:
    """The path of bash on this machine; empty if it has none."""
    return shutil.which("bash") or ""


class ScriptShells:
    """The shells of one slot."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """`environment` is what the jobs of the slot inherit."""
        self._bash = find_bash()
        own = any(name == "BASH_ENV" or name.startswith("BASH_FUNC_") for name in environment)
        self._always_bash = bool(self._bash) and own

    def process(self, shell: str, text: str, script: str, *, env: Mapping[str, str], limits: Limits) -> ProcessStart:
        """How to run a command. `script` is where its text may be written to, `env` is the job's environment."""
        start = self._process(shell, text, script, env)
        bounds = shell_limits(limits)
        if not bounds:
            return start
        # The limits are set by a shell that then becomes the program: no two shells count them alike.
        arguments = ["sh", "-c", f'{bounds}exec "$0" "$@"', start.program, *start.arguments[1:]]
        return ProcessStart(SHELL, arguments, start.from_file)

    def _process(self, shell: str, text: str, script: str, env: Mapping[str, str]) -> ProcessStart:
        if shell == DEFAULT_SHELL:
            shell = "bash" if self._bash and (self._always_bash or not is_plain_command(text)) else "sh"
        if shell in OPTIONS:
            program = self._bash if shell == "bash" else SHELL
            if not program:
                raise ShellNotFound(shell, "bash")
            words = [os.path.basename(program), *OPTIONS[shell]]
            if fits_argument(text):
                return ProcessStart(program, [*words, "-c", text])
            return ProcessStart(program, [*words, script], from_file=True)
        if shell == "python":
            program = _on_path("python3", env) or _on_path("python", env) or sys.executable
            return ProcessStart(program, ["python3", script], from_file=True)
        words = template_words(shell, script)
        found = words[0] if "/" in words[0] else _on_path(words[0], env)
        if not found:
            raise ShellNotFound(shell, words[0])
        return ProcessStart(found, words, from_file=True)


def is_plain_command(text: str) -> bool:
    """Whether this is one program with plain words: every shell runs it alike, and `sh` begins sooner than bash."""
    return PLAIN_WORDS.fullmatch(text) is not None and not BUILT_IN.fullmatch(text.partition(" ")[0])


def fits_argument(text: str) -> bool:
    return len(text) < COMMAND_BYTES_MAX // 4 or len(os.fsencode(text)) < COMMAND_BYTES_MAX


def _on_path(program: str, env: Mapping[str, str]) -> str:
    return shutil.which(program, path=env.get("PATH", os.defpath)) or ""
