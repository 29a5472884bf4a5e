"""Which program runs a job's script: the words and templates of the key `shell`.

A script that fails anywhere must fail its job, so the usual shells stop at the first command that fails. A template is
run exactly as it is written, with the script's file in the place of `{0}`."""

import re
from typing import Final

from mendflow.lazy import lazy_pattern

SCRIPT_FILE: Final = "{0}"
"""What stands in a template for the file that holds the script."""

DEFAULT_SHELL: Final = ""
"""No shell was chosen: `bash` where the pilot has one, else `sh`."""

PLAIN_SHELL: Final = "sh {0}"
"""A shell that goes on after a command that failed: what a line for a program in JSDL is run by."""

OPTIONS: Final[dict[str, tuple[str, ...]]] = {"bash": ("-euo", "pipefail"), "sh": ("-eu",), PLAIN_SHELL: ()}
"""The shells that take a script as an argument, with the options that they are given."""

WORD: Final = lazy_pattern(r"""(?:[^\s'"\\]|\\.|'[^']*'|"(?:[^"\\]|\\.)*")+""", re.DOTALL)
QUOTED: Final = lazy_pattern(r"""'([^']*)'|"((?:[^"\\]|\\.)*)"|\\(.)""", re.DOTALL)
NAMED: Final = ("bash", "sh", "python")


def shell_flaw(text: str) -> str:
    """What is wrong with a shell that was chosen; empty if nothing is."""
    if text == DEFAULT_SHELL or text in NAMED:
        return ""
    if "\0" in text or "${{" in text:
        return "a shell is written out, with no expression in it"
    words = words_of(text)
    if words is None:
        return f"`{text:.80}` has a quotation mark that is not closed"
    if not words:
        return f"a shell is {', '.join(NAMED)}, or a template such as `Rscript {SCRIPT_FILE}`"
    if not any(SCRIPT_FILE in word for word in words[1:]):
        return f"`{text:.80}` does not say where the script goes: write `{text:.80} {SCRIPT_FILE}`"
    return ""


def template_words(template: str, script: str) -> list[str]:
    """The words of a template, with the path of the script."""
    return [word.replace(SCRIPT_FILE, script) for word in words_of(template) or ()]


def words_of(text: str) -> list[str] | None:
    """The words of a line as a shell would take it apart, with nothing put in the place of anything; None if a
    quotation mark is not closed."""
    if WORD.sub("", text).strip():
        return None
    return [QUOTED.sub(_unquoted, word) for word in WORD.findall(text)]


def _unquoted(quoted: re.Match[str]) -> str:
    single, double, other = quoted.groups()
    if double is not None:
        return re.sub(r'\\(["\\$`])', r"\1", double)
    return single if single is not None else other


def pipes_fail(shell: str) -> bool:
    """Whether a failure inside a pipe ends a script of this shell, as far as the name says."""
    return shell in (DEFAULT_SHELL, "bash") or "pipefail" in shell


def runs_in_shell(shell: str) -> bool:
    """Whether a script is one of a POSIX shell, as far as the name says."""
    return shell == DEFAULT_SHELL or shell in OPTIONS
