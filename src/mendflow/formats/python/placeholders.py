"""Commands of `shell.map`: `{item}` stands for the element, as one piece of text, wherever it stands in the command.

A value may hold spaces, quotes or a `;`. So each is quoted, in the way that its place asks for: inside quotes of the
command the quotes are closed before it and opened after it. All other braces are the shell's own."""

import re
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import PurePosixPath
from typing import Any, Final

from mendflow.core.expressions.templates import closing_at
from mendflow.formats.python.handles import Handle
from mendflow.formats.python.problems import bad_flow

WORD: Final = re.compile(r"\{([A-Za-z_]\w*)((?:\.[A-Za-z_]\w*)*)\}")
POSIX_SHELLS: Final = ("", "bash", "sh", "dash", "ksh", "zsh")
AROUND: Final = {"double": ('"', '"'), "single": ("'", "'"), "ansi": ("'", "$'")}
"""What closes and opens the quotes again around a value that stands inside them."""

INDEX: Final = "index"
HERE: Final = "here-document"
PARAMETER: Final = "parameter"


class Placeholders:
    """The names that may stand in braces, and which of them were used."""

    def __init__(self, elements: Mapping[str, Handle]) -> None:
        owner = next(iter(elements.values()))._owner
        self.known = {**elements, INDEX: Handle(owner, INDEX)}
        self.used: set[str] = set()
        self.staged: dict[str, str] = {}

    def expression(self, found: re.Match[str]) -> str:
        """What stands for the element in a text. Of a file this is its path in the job's folder, where it is put."""
        name, members = found.groups()
        self.used.add(name)
        handle = self.known[name]
        if members or handle._holds not in ("file", "path"):
            return f"{handle._expression}{members}"
        self.staged[f"{name}/"] = f"${{{{ {handle._expression} }}}}"
        return f"{name + '/'!r} + {file_name(handle)}"

    def text(self, template: str) -> str:
        """A path or a value of an option with its elements."""

        def filled(found: re.Match[str]) -> str:
            return f"${{{{ {self.expression(found)} }}}}" if found.group(1) in self.known else found.group()

        return WORD.sub(filled, template)

    def source(self, given: Any) -> Any:
        """What an input comes from; an element alone is the file itself."""
        found = WORD.fullmatch(given) if isinstance(given, str) else None
        if found is None or found.group(1) not in self.known:
            return self.text(given) if isinstance(given, str) else given
        self.used.add(found.group(1))
        return f"${{{{ {self.known[found.group(1)]._expression}{found.group(2)} }}}}"

    def demand_use(self, command: str) -> None:
        """Refuse a command that does the same for each element, and a name that is none."""
        names = [name for name in self.known if name != INDEX]
        for word in WORD.finditer(command):
            close = get_close_matches(word.group(1), self.known, 1, 0.75)
            if word.group(1) not in self.known and close and not command[: word.start()].endswith("$"):
                raise bad_flow(f"there is no element `{{{word.group(1)}}}` here", f"`{{{close[0]}}}`")
        if missing := [name for name in names if name not in self.used]:
            told = f"`{{{missing[0]}}}`"
            raise bad_flow(f"the command does not use {told}, so it would do the same for each; write {told} in it")


def file_name(handle: Handle) -> str:
    text = handle._expression
    return f"{text}.name" if handle._holds == "file" else f'{text}.substring({text}.lastIndexOf("/") + 1)'


def filled_command(command: str, places: Placeholders, shell: str) -> str:
    """The command with an expression for each element in braces."""
    parts, at = [], 0
    for start, state in element_states(command, places):
        found = WORD.match(command, start)
        assert found is not None, "only elements in braces are found"
        if state == HERE or not is_posix(shell):
            name = found.group(1)
            raise bad_flow(
                f"`{{{name}}}` cannot be quoted {'here' if is_posix(shell) else f'for `{shell}`'}; give it as "
                f'env={{"{name.upper()}": "{{{name}}}"}} and read it from the environment'
            )
        before, after = AROUND.get(state, ("", ""))
        quoted = f"${{{{ quote({places.expression(found)}) }}}}"
        parts += [command[at:start], before, quoted, after]
        at = found.end()
    return "".join([*parts, command[at:]])


def is_posix(shell: str) -> bool:
    return PurePosixPath(shell.split(maxsplit=1)[0] if shell.strip() else "").name in POSIX_SHELLS


def element_states(command: str, places: Placeholders) -> list[tuple[int, str]]:
    """Where elements in braces stand, and inside which quotes."""
    scan = QuoteScan(command)
    found = []
    while scan.at < len(command):
        if command.startswith("${{", scan.at):
            end = closing_at(command, scan.at + 3)
            scan.at = len(command) if end < 0 else end + 2
            continue
        word = WORD.match(command, scan.at + 1 if command[scan.at] == "$" else scan.at)
        if word is None or word.group(1) not in places.known:
            scan.step()
            continue
        if word.start() > scan.at:
            raise bad_flow(f"`${word.group()}` is a variable of the shell; the element is `{word.group()}`")
        found.append((scan.at, scan.state if scan.can_quote else HERE))
        scan.at = word.end()
    return found


class QuoteScan:
    """Goes through a command, character by character, and knows inside which quotes it is."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.open: list[str] = []

    @property
    def state(self) -> str:
        """The innermost quotes."""
        return self.open[-1] if self.open else ""

    @property
    def can_quote(self) -> bool:
        """Whether a word can be quoted here: neither in a here-document nor in `${NAME:-...}`."""
        return HERE not in self.open and PARAMETER not in self.open

    def step(self) -> None:
        character = self.text[self.at]
        width = 1
        if self.state == "single":
            if character == "'":
                self.open.pop()
        elif character == "\\":
            width = 2
        elif self.state == "ansi":
            if character == "'":
                self.open.pop()
        elif self.state == "double":
            width = self._in_double(character)
        else:
            width = self._outside(character)
        self.at += width

    def _in_double(self, character: str) -> int:
        if character == '"':
            self.open.pop()
        return self._substitution(character)

    def _outside(self, character: str) -> int:
        before = self.text[self.at - 1] if self.at else "\n"
        if character == "'":
            self.open.append("ansi" if before == "$" else "single")
        elif character == '"':
            self.open.append("double")
        elif character == "#" and before in " \t\n;&|(":
            end = self.text.find("\n", self.at)
            return (end if end >= 0 else len(self.text)) - self.at
        elif character == "(" and self.open:
            self.open.append("parenthesis")
        elif character == ")" and self.state in ("parenthesis", "substitution", "arithmetic"):
            self.open.pop()
        elif self.text.startswith("<<<", self.at):
            return 3
        elif self.text.startswith("<<", self.at) and self.state != "arithmetic":
            self.open.append(HERE)
            return 2
        return self._substitution(character)

    def _substitution(self, character: str) -> int:
        """Commands inside a command, `$(...)` or between backquotes, and what is made of a variable, `${...}`."""
        if self.text.startswith("${", self.at):
            self.open.append(PARAMETER)
            return 2
        if character == "}" and self.state == PARAMETER:
            self.open.pop()
            return 1
        if self.text.startswith("$((", self.at):
            self.open += ["arithmetic", "arithmetic"]
            return 3
        if self.text.startswith("$(", self.at):
            self.open.append("substitution")
            return 2
        if character == "`" and self.state == "backquote":
            self.open.pop()
        elif character == "`":
            self.open.append("backquote")
        return 1
