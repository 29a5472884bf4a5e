"""Converts a program with arguments and streams to a shell line, and such a line back.

A job here is a shell text, JSDL names a program. The line for a program is always the same, so it can be recognised.
Any other command becomes a shell with the text as its argument."""

import shlex
from typing import Final

import msgspec

from mendflow.core.model.shells import OPTIONS, PLAIN_SHELL

FOLDER: Final = "jsdl_folder"
"""The variable of the shell that keeps the job's own folder, for what is not in the working directory."""

SHELL_WORDS: Final = {
    PLAIN_SHELL: ("/bin/sh", "-c"),
    "sh": ("/bin/sh", *OPTIONS["sh"], "-c"),
    "bash": ("bash", *OPTIONS["bash"], "-c"),
}
"""The shells that JSDL can say: a program and the arguments before the text."""

SCRIPT: Final = "MENDFLOW_SCRIPT"
EVALUATED: Final = f'eval "${SCRIPT}"'
"""How a text of several lines is given to a shell, as no argument can hold the end of a line."""


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """Every part is a word of a shell already, with what must be in quotation marks in them. An empty word is a part
    that is not there. `folder` is made if it is in the job's own; `staged` is the program that comes with the job."""

    executable: str = ""
    arguments: tuple[str, ...] = ()
    input: str = ""
    output: str = ""
    error: str = ""
    folder: str = ""
    makes_folder: bool = False
    staged: str = ""
    exports: tuple[tuple[str, str], ...] = ()


def command_of(program: Program) -> str:
    """The text for a shell. What cannot be prepared ends it with 125, as a limit does that cannot be set."""
    if not program.executable:
        return ":"
    lines = [f"export {name}={word}" for name, word in program.exports]
    if program.folder:
        made = f"mkdir -p -- {program.folder} && " if program.makes_folder else ""
        lines.append(f"{made}cd -- {program.folder} || exit 125")
    if program.staged:
        lines.append(f"chmod u+x -- {program.staged} || exit 125")
    lines.append(" ".join(["exec", program.executable, *program.arguments, *_streams(program)]))
    text = "\n".join(lines)
    return f"{FOLDER}=$PWD\n{text}" if f"${FOLDER}" in text else text


def _streams(program: Program) -> list[str]:
    words = ["<", program.input] if program.input else []
    words += [">", program.output] if program.output else []
    if program.error:
        words += ["2>&1"] if program.error == program.output else ["2>", program.error]
    return words


def program_of(command: str) -> Program | None:
    """The program whose line this is; None if it is not the line of one."""
    *before, last = command.split("\n")
    folder, makes_folder = _folder_in(before)
    try:
        words = shlex.split(last)
    except ValueError:
        return None
    if len(before) > bool(folder) or words[:1] != ["exec"] or len(words) < 2:
        return None
    arguments, streams = words[2:], dict[str, str]()
    together = arguments[-1:] == ["2>&1"]
    arguments = arguments[:-1] if together else arguments
    while len(arguments) >= 2 and arguments[-2] in ("<", ">", "2>"):
        streams[arguments[-2]] = shlex.quote(arguments[-1])
        arguments = arguments[:-2]
    found = Program(
        executable=shlex.quote(words[1]),
        arguments=tuple(map(shlex.quote, arguments)),
        input=streams.get("<", ""),
        output=streams.get(">", ""),
        error=streams.get(">" if together else "2>", ""),
        folder=folder,
        makes_folder=makes_folder,
    )
    return found if command_of(found) == command else None


def _folder_in(lines: list[str]) -> tuple[str, bool]:
    """The working directory that a first line goes to, and whether it makes it."""
    if len(lines) != 1:
        return "", False
    words = lines[0].split(" ")
    if words[:3] == ["mkdir", "-p", "--"]:
        return lines[0].partition(" && cd -- ")[2].removesuffix(" || exit 125"), True
    if words[:2] == ["cd", "--"]:
        return lines[0].removeprefix("cd -- ").removesuffix(" || exit 125"), False
    return "", False
