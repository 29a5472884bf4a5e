"""<Application>: the program, in the forms of POSIX, the HPC profile and SPMD, as far as one machine can run it."""

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from mendflow.core.expressions import literal
from mendflow.core.model.flow import DURATION_MS_MAX
from mendflow.core.model.jobs import Limits
from mendflow.core.model.shells import DEFAULT_SHELL, PLAIN_SHELL
from mendflow.core.xml import ParsedElement
from mendflow.formats.jsdl.file_systems import FileLocation, FileSystems
from mendflow.formats.jsdl.program import EVALUATED, SCRIPT, SHELL_WORDS, Program, command_of
from mendflow.formats.jsdl.reader import JsdlReader, abbreviate, elements, local, namespace
from mendflow.formats.jsdl.spmd import ProcessLayout, process_layout
from mendflow.formats.jsdl.vocabulary import (
    GRIDSAM_MPI,
    HPC,
    JSDL,
    LIMITS,
    MANY,
    POSIX,
    REFUSED_POSIX,
    SPMD,
)

OUTER: Final = {"ApplicationName": 1, "ApplicationVersion": 1, "Description": 1}
STREAMS: Final = ("Input", "Output", "Error")
PLAIN: Final = {
    "Executable": 1,
    "Argument": MANY,
    **dict.fromkeys(STREAMS, 1),
    "WorkingDirectory": 1,
    "Environment": MANY,
}
FULL: Final = {**PLAIN, **dict.fromkeys(LIMITS, 1), "WallTimeLimit": 1, "MemoryLimit": 1}
FORMS: Final = {
    (POSIX, "POSIXApplication"): FULL,
    (HPC, "HPCProfileApplication"): PLAIN,
    (SPMD, "SPMDApplication"): {
        **FULL,
        "NumberOfProcesses": 1,
        "ProcessesPerHost": 1,
        "ThreadsPerProcess": 1,
        "SPMDVariation": 1,
    },
    (GRIDSAM_MPI, "MPIApplication"): {**FULL, "ProcessorCount": 1},
}
FILE_SYSTEM: Final = "filesystemName"
SHELL_SIGNS: Final = re.compile(r"[$;`|&<>\n]")
VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
BLANKS: Final = str.maketrans("\t\r\n", "   ")


class ApplicationSpec(msgspec.Struct, kw_only=True):
    """What an application says of its job. `files` are its streams in the job's folder, `folder` is where it works."""

    command: str = ":"
    shell: str = DEFAULT_SHELL
    env: dict[str, Any] = {}
    files: dict[str, str] = {}
    limits: Limits = Limits()
    wall_ms: int = 0
    memory_limit: int = 0
    name: str = ""
    words: list[str] = []
    spread: ProcessLayout = ProcessLayout()
    folder: FileLocation = FileLocation("", "")
    at: ParsedElement | None = None


class Application:
    """Reads one; `staged` are the paths that files are brought to."""

    def __init__(self, reader: JsdlReader, systems: FileSystems, cpus: int) -> None:
        self._reader = reader
        self._systems = systems
        self._cpus = cpus

    def form(self, at: ParsedElement | None) -> tuple[ParsedElement | None, list[str]]:
        """The element that names the program, and what is said about it in words."""
        if at is None:
            return None, []
        self._reader.attributes(at)
        forms = [each for each in elements(at) if (namespace(each), local(each)) in FORMS]
        others = [each for each in elements(at) if each not in forms]
        words = self._words(at, others)
        for each in forms[1:]:
            self._reader.problem(each, "an <Application> is one program; this is a second one")
        if not forms and any(namespace(each) == JSDL and local(each) == "ApplicationName" for each in others):
            self._reader.problem(
                at, "<ApplicationName> cannot be honoured: no pilot knows programs by such a name; say <Executable>"
            )
        return (forms[0] if forms else None), words

    def _words(self, at: ParsedElement, others: Sequence[ParsedElement]) -> list[str]:
        words = []
        for each in others:
            if namespace(each) != JSDL:
                self._reader.problem(
                    each,
                    f"<{local(each)}> of {namespace(each)!r:.100} is no kind of application that can be honoured here: "
                    "there are POSIXApplication, HPCProfileApplication and SPMDApplication",
                )
            elif local(each) not in OUTER:
                self._reader.problem(each, f"<Application> has no <{local(each)}>")
            elif text := self._reader.text(each).strip():
                label = {"ApplicationName": "application: ", "ApplicationVersion": "version: "}.get(local(each), "")
                words.append(label + text)
        return words

    def folder(self, form: ParsedElement | None) -> FileLocation:
        """The working directory, which files are brought to."""
        found = [each for each in elements(form) if local(each) == "WorkingDirectory"] if form is not None else []
        if not found:
            return FileLocation("", "")
        system = found[0].get(FILE_SYSTEM)
        text = self._reader.text(found[0], FILE_SYSTEM).strip()
        if system is None and text in ("", ".", "./"):
            return FileLocation("", "")
        return self._systems.spot(found[0], text, system, FileLocation("", ""))

    def applied(self, form: ParsedElement | None, folder: FileLocation, staged: Sequence[str]) -> ApplicationSpec:
        if form is None:
            return ApplicationSpec(folder=folder)
        reader = self._reader
        key = (namespace(form), local(form))
        own = (POSIX,) if key[0] in (SPMD, GRIDSAM_MPI) else ()
        parts = reader.parts(form, FORMS[key], REFUSED_POSIX, own)
        name = reader.attributes(form, "name").get("name", "")
        spread = process_layout(reader, form, parts, self._cpus)
        program, env, files = self._program(parts, folder, staged, spread)
        limits, wall_ms, memory_limit = self._limits(parts)
        if not parts.get("Executable") and (parts.keys() - {"WorkingDirectory"} or spread.launcher):
            reader.problem(form, f"<{local(form)}> names no <Executable>")
        command, shell, env = as_command(program, env)
        return ApplicationSpec(
            command=command,
            shell=shell,
            env=env,
            files=files,
            limits=limits,
            wall_ms=wall_ms,
            memory_limit=memory_limit,
            name=name.strip(),
            spread=spread,
            folder=folder,
            at=form,
        )

    def _program(
        self,
        parts: Mapping[str, Sequence[ParsedElement]],
        folder: FileLocation,
        staged: Sequence[str],
        spread: ProcessLayout,
    ) -> tuple[Program, dict[str, str], dict[str, str]]:
        executable, is_staged = self._executable(parts.get("Executable", []), folder, staged)
        streams = {name: self._spot(parts[name][0], folder) for name in STREAMS if parts.get(name)}
        env, exports = self._environment(parts.get("Environment", []), folder)
        arguments = [self._argument(each, folder) for each in parts.get("Argument", [])]
        launched = bool(spread.launcher and executable)
        program = Program(
            executable=shlex.quote(spread.launcher[0]) if launched else executable,
            arguments=(*map(shlex.quote, spread.launcher[1:]), executable, *arguments)
            if launched
            else tuple(arguments),
            folder=folder.word,
            makes_folder=bool(folder.word) and folder.inside is not None,
            staged=executable if is_staged else "",
            exports=exports,
            **{name.lower(): spot.word for name, spot in streams.items()},
        )
        files = {name.lower(): spot.inside for name, spot in streams.items() if name != "Input" and spot.inside}
        return program, {**spread.env, **env}, files

    def _executable(
        self, given: Sequence[ParsedElement], folder: FileLocation, staged: Sequence[str]
    ) -> tuple[str, bool]:
        """Its word, and whether it is brought with the job: then it must be made a program first."""
        if not given:
            return "", False
        at = given[0]
        system = at.get(FILE_SYSTEM)
        text = self._reader.word(at, FILE_SYSTEM)
        if SHELL_SIGNS.search(text):
            self._reader.problem(
                at,
                f"<Executable> {abbreviate(text)} is a line for a shell, and no program: give its words as"
                " <Argument>s, or say /bin/sh with the arguments -c and the line",
            )
            return "", False
        if system is None and "/" not in text:
            if folder.inside is None or f"{folder.inside}/{text}".lstrip("/") not in staged:
                return shlex.quote(text), False  # to be found on the PATH
            return shlex.quote(f"./{text}"), True
        if system is None and text.startswith("./"):
            return shlex.quote(text), self._systems.spot(at, text, None, folder).inside in staged
        spot = self._systems.spot(at, text, system, folder)
        return spot.word if system else shlex.quote(text), spot.inside is not None and spot.inside in staged

    def _spot(self, at: ParsedElement, folder: FileLocation) -> FileLocation:
        text = self._reader.word(at, FILE_SYSTEM)
        return self._systems.spot(at, text, at.get(FILE_SYSTEM), folder) if text else FileLocation()

    def _argument(self, at: ParsedElement, folder: FileLocation) -> str:
        """An argument is one, whatever is in it; what ends a line in it is a blank, as JSDL wants it."""
        text = self._reader.text(at, FILE_SYSTEM).translate(BLANKS)
        system = at.get(FILE_SYSTEM)
        return shlex.quote(text) if system is None else self._systems.spot(at, text.strip(), system, folder).word

    def _environment(
        self, given: Sequence[ParsedElement], folder: FileLocation
    ) -> tuple[dict[str, str], tuple[tuple[str, str], ...]]:
        env: dict[str, str] = {}
        exports: list[tuple[str, str]] = []
        for at in given:
            text = self._reader.text(at, "name", FILE_SYSTEM)
            name, system = (at.get("name") or "").strip(), at.get(FILE_SYSTEM)
            if not name or "=" in name or "\0" in name or (system is not None and not VARIABLE.fullmatch(name)):
                self._reader.problem(at, f"<Environment> needs a name that a variable can have, not {abbreviate(name)}")
            elif name in env or name in dict(exports):
                self._reader.problem(at, f"the variable {abbreviate(name)} is given twice")
            elif system is None:
                env[name] = text
            else:
                exports.append((name, self._systems.spot(at, text.strip(), system, folder).word))
        return env, tuple(exports)

    def _limits(self, parts: Mapping[str, Sequence[ParsedElement]]) -> tuple[Limits, int, int]:
        reader, found = self._reader, dict[str, Any]()
        for name, field in LIMITS.items():
            for at in parts.get(name, []):
                number = reader.count(at, least=0 if name == "CoreDumpLimit" else 1)
                found[field] = number * 1000 if field == "cpu_ms" else number
        wall = [reader.count(at) * 1000 for at in parts.get("WallTimeLimit", [])]
        if wall and wall[0] > DURATION_MS_MAX:
            reader.problem(parts["WallTimeLimit"][0], "<WallTimeLimit> is longer than ten years")
        memory = [reader.count(at) for at in parts.get("MemoryLimit", [])]
        return Limits(**found), (wall or [0])[0], (memory or [0])[0]


def as_command(program: Program, env: dict[str, str]) -> tuple[str, str, dict[str, str]]:
    """The command of a program, the shell that runs it, and its environment; command and environment as templates that
    are nothing but text. A shell that is given a text and nothing else is that text; any other program is a line for a
    plain shell."""
    texts = {literal(name): literal(value) for name, value in env.items()}
    alone = Program(executable=program.executable, arguments=program.arguments)
    for shell, (executable, *before) in SHELL_WORDS.items():
        if program != alone or program.executable != executable or program.arguments[:-1] != tuple(before):
            continue
        text = shlex.split(program.arguments[-1])[0]
        if text == EVALUATED and SCRIPT in env:
            return literal(env[SCRIPT]), shell, {name: value for name, value in texts.items() if name != SCRIPT}
        if text.strip():
            return literal(text), shell, texts
    return literal(command_of(program)), PLAIN_SHELL, texts
