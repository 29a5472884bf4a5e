"""What a job's script names that is not in its key: places outside of its folder, and variables that it does not set.

The script is read as a shell would read it, so that a slash in the program of sed or awk, in a comment or in a division
begins no path, and so that a variable that the script sets itself is known. What is not understood counts as named."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise, zip_longest
from typing import Final, NamedTuple

from mendflow.core.model.shells import words_of
from mendflow.core.results.assigned_variables import AssignedVariables
from mendflow.core.results.interpreter_code import is_interpreter, outside_reads_in, variables_of_jq
from mendflow.core.results.known_programs import (
    AWK,
    FETCHES,
    FETCHING_SUBCOMMANDS,
    SED,
    SHELLS,
    STARTERS,
    TAKES_SCRIPT,
    fetching_subcommand,
    program_of,
    started_program_at,
)
from mendflow.core.results.outside_paths import places_in, variables_read_in
from mendflow.core.results.sed_programs import only_changes_lines
from mendflow.core.results.shell_reader import (
    PUT_IN,
    Arithmetic,
    Command,
    Expansion,
    Substitution,
    UnreadableScript,
    Variable,
    Word,
    read_script,
)
from mendflow.lazy import lazy_pattern

SCRIPTS_REMEMBERED: Final = 2048

OF_THE_ATTEMPT: Final = frozenset(
    {"MENDFLOW_JOB", "MENDFLOW_CASE", "MENDFLOW_ITEM", "MENDFLOW_ATTEMPT", "MENDFLOW_FENCE"}
)
"""Variables that differ from case to case, though the job is made from the same."""

SET_FOR_EACH_JOB: Final = frozenset(
    {"MENDFLOW_OUTPUT", "MENDFLOW_REPORT", "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "PWD", "PATH", "IFS"}
    | {"RANDOM", "SECONDS", "LINENO", "REPLY", "OPTARG", "OPTIND", "PIPESTATUS", "BASH_REMATCH", "BASHPID", "PPID"}
    | {"BASH_SOURCE", "FUNCNAME", "_"}
)
"""Variables that the pilot or the shell sets, and that say nothing about data."""

_TAKES_SLASH: Final = frozenset({"tr", "cut", "sort", "paste", "column", "join", "echo", "printf", "expr", *AWK})
"""Programs to which a slash alone is a character, not a place."""

_KEYWORDS: Final = frozenset({"if", "then", "else", "elif", "do", "while", "until", "!", "{", "}", "time"})
_TESTS: Final = frozenset({"[[", "[", "test"})
_DECLARES: Final = frozenset({"export", "local", "declare", "typeset", "readonly"})
_READS_INTO: Final = frozenset({"read", "mapfile", "readarray", "getopts"})
_HASH_COMMENTS: Final = frozenset({*SHELLS, "python", "python3", "Rscript", "perl", "ruby", "julia"})

_ABOUT_ITSELF: Final = frozenset({"--version", "-V", "--help", "-h"})
_SHOWS_ENVIRONMENT: Final = frozenset({"set", "compgen", *_DECLARES} - {"local"})
_WHOLE_ENVIRONMENT: Final = "the whole environment"
_OWN_FOLDER: Final = "PWD"
_FORMER_FOLDER: Final = "OLDPWD"

_SUSPECT = lazy_pattern(
    r"[/~$`]|\(\(|\.\.|\+=|-v\b|[Ee]nviron|ENV|env\b|\b(?:python|pypy|perl|ruby|node|R|julia|lua|php|deno|bun)|\b(?:cd|envsubst|"
    + "|".join(sorted(FETCHES | FETCHING_SUBCOMMANDS.keys() | _SHOWS_ENVIRONMENT))
    + r")\b"
)
"""A shell's script without any of this names nothing."""

_NAME = lazy_pattern(r"[A-Za-z_]\w*")
_ASSIGNMENT = lazy_pattern(r"([A-Za-z_]\w*)(?:\[[^\]]*\])?\+?=(.*)", re.DOTALL)
_APPENDING = lazy_pattern(r"[A-Za-z_]\w*(?:\[[^\]]*\])?\+=")
_SET_IN_ARITHMETIC = lazy_pattern(r"([A-Za-z_]\w*)\s*(?:[-+*/%&|^]|<<|>>)?=(?!=)")
_NAME_IN_ARITHMETIC = lazy_pattern(r"(?<![\w#.])[A-Za-z_]\w*")
_IN_HOME = lazy_pattern(r"(?:^|[=:])~(?:$|[\w/+-])")
_COMMENT_LINE = lazy_pattern(r"^\s*#.*$", re.MULTILINE)
_OF_FUNCTIONS = lazy_pattern(r"[fF]")
_AWK_TEXT = lazy_pattern(r'"((?:\\.|[^"\\])*)"')
_NOTHING_IN_BRACES = lazy_pattern(r"(?:\{,|,\}|,,)\S*/")
_SED_OPTION = lazy_pattern(r"(?:-[nErsuz]*e|--expression=)(.*)", re.DOTALL)
_SED_FILE = lazy_pattern(r"-[nErsuz]*f|--file=.*", re.DOTALL)
_SHELL_VARIABLE = lazy_pattern(r"\$\{?([A-Za-z_]\w*)")
_SHELL_ASSIGNMENT = lazy_pattern(r"\b([A-Za-z_]\w*)=|\b(?:for|read(?: -\w+)*)\s+([A-Za-z_]\w*)")


class Doubt(NamedTuple):
    """A place or a variable that a script names and that is not in its key."""

    name: str
    is_variable: bool = False
    is_program: bool = False

    def sentence(self) -> str:
        shown = self.name.replace(PUT_IN, "...")[:300]
        if self.is_program:
            return f"it runs {shown}, which gets from elsewhere what may have changed"
        if not self.is_variable:
            return f"it names {shown}, which is none of its inputs and may have changed"
        if self.name in OF_THE_ATTEMPT:
            return f"it uses ${shown}, which is another in each case"
        return f"it uses ${shown}, which it does not set itself and which may be another now"


def doubts_of_text(text: str) -> Iterator[Doubt]:
    """What a text that is no script names: an argument, the value of a variable."""
    yield from map(Doubt, places_in(text))


@lru_cache(maxsize=SCRIPTS_REMEMBERED)
def first_doubt(script: str, shell: str, variables: frozenset[str]) -> str:
    """Why the script may depend on something that is not in its key; empty if it does not. `variables` are those that
    the job sets."""
    program = (words_of(shell) or ["bash"])[0].rpartition("/")[2]
    if program in SHELLS and not _SUSPECT.search(shell) and not _SUSPECT.search(script):
        return ""
    known = (variables | SET_FOR_EACH_JOB) - OF_THE_ATTEMPT
    try:
        named = next(doubts_of_text(shell), None) or next(_doubts(script, program, known), None)
    except UnreadableScript as flaw:
        return f"its script cannot be read, as {flaw}, so it is not known what it names"
    return named.sentence() if named is not None else ""


def _doubts(script: str, program: str, known: frozenset[str]) -> Iterator[Doubt]:
    if program in SHELLS:
        yield from _ScriptNames(known).in_commands(read_script(script))
    else:
        text = _COMMENT_LINE.sub("", script) if program in _HASH_COMMENTS else script
        yield from _in_other_language(text, known)


def _in_other_language(text: str, known: Iterable[str]) -> Iterator[Doubt]:
    yield from doubts_of_text(text)
    yield from (Doubt(name, True) for name in variables_read_in(text, frozenset(known)))
    yield from _of_language(text, known)


def _of_language(text: str, known: Iterable[str]) -> Iterator[Doubt]:
    yield from (
        Doubt(each.name, each.is_variable, each.is_program) for each in outside_reads_in(text, frozenset(known))
    )


class _ScriptNames:
    """Walks through a script in the order in which it stands. `known` grows by the variables that it sets."""

    def __init__(self, known: Iterable[str], own_folder: Iterable[str] = (_OWN_FOLDER,)) -> None:
        """`own_folder` are variables that hold the path of the job's folder."""
        self._names = AssignedVariables(frozenset(known))
        self._own_folder = set(own_folder)

    @property
    def _known(self) -> set[str]:
        return self._names.known

    def in_commands(self, commands: Sequence[Command]) -> Iterator[Doubt]:
        programs = [
            program_of(command.words[started_program_at(command.words)]) if command.words else ""
            for command in commands
        ]
        for at, (command, following) in enumerate(zip_longest(commands, commands[1:])):
            self._names.before(command)
            for arithmetic in command.arithmetic:
                yield from self._in_arithmetic(arithmetic)
            yield from self._in_words(command.redirections)
            for document in command.documents:
                yield from self._in_expansions(document.expansions)
                yield from _in_other_language(document.text, self._known)
                if SHELLS.intersection(programs[at : at + 2]):
                    yield from self._in_inner_script(document.text)
                elif SHELLS.intersection(programs):
                    yield from self._in_written_script(document.text)
            yield from self._in_command(command.words)
            self._names.after(command, following)

    def _in_inner_script(self, text: str) -> Iterator[Doubt]:
        """A script that another shell runs; what it sets is not known afterwards."""
        yield from _ScriptNames(self._known, self._own_folder).in_commands(read_script(text.replace(PUT_IN, "x")))

    def _in_written_script(self, text: str) -> Iterator[Doubt]:
        """A text that may be a script, as a shell is run after it was written."""
        own = {name for found in _SHELL_ASSIGNMENT.findall(text) for name in found}
        yield from (Doubt(name, True) for name in _unknown(text, self._known | own))

    # Commands

    def _in_command(self, words: list[Word]) -> Iterator[Doubt]:
        at, set_before = 0, list[str]()
        while at < len(words) and (words[at].text in _KEYWORDS or words[at].text == "function"):
            at += 1 + (words[at].text == "function")
        while at < len(words) and (name := _assigned(words[at])):
            yield from self._in_word(words[at], takes_slash=name == "IFS")
            yield from self._in_appending(words[at], name)
            set_before.append(name)
            if self._names_own_folder(words[at]):
                self._own_folder.add(name)
            at += 1
        if at == len(words):
            self._known.update(set_before)  # before a command they are set for that command only
            return
        rest = words[at:]
        first = rest[0].text
        if first in ("for", "select") and len(rest) > 1:
            yield from self._in_words(rest[2:])
            self._names.add_loop_variable(rest[1].text, is_sure=any(not word.expansions for word in rest[3:]))
        elif first in _DECLARES:
            yield from self._in_declaration(rest)
        else:
            yield from self._in_program(rest)
            self._known.update(_names_read_into(rest))

    def _in_declaration(self, words: list[Word]) -> Iterator[Doubt]:
        options = "".join(word.text for word in words[1:] if word.text.startswith("-"))
        names = [word.text for word in words[1:] if not word.text.startswith("-")]
        if not names and words[0].text in _SHOWS_ENVIRONMENT and not _OF_FUNCTIONS.search(options):
            yield Doubt(_WHOLE_ENVIRONMENT)
        if "p" in options:
            yield from (Doubt(name, True) for name in names if name not in self._known)
        for word in words[1:]:
            yield from self._in_word(word)
            yield from self._in_appending(word, _assigned(word))
            if name := _assigned(word) or (_hides_outer(words[0].text, options) and _whole_name(word)):
                self._known.add(name)

    def _in_appending(self, word: Word, name: str) -> Iterator[Doubt]:
        """`NAME+=` keeps what the variable had, from outside if the script has not set it."""
        if name and name not in self._known and _APPENDING.match(word.text):
            yield Doubt(name, True)

    def _in_program(self, words: list[Word]) -> Iterator[Doubt]:
        at = started_program_at(words)
        yield from self._in_words(words[: at + 1])
        program, rest = program_of(words[at]), words[at + 1 :]
        if program in STARTERS and any(program_of(word) == "env" for word in words):
            yield Doubt(_WHOLE_ENVIRONMENT)  # it has nothing to start, so it prints
        if fetching := fetching_subcommand(words):
            yield Doubt(fetching, is_program=True)
        if program_of(words[0]) in TAKES_SCRIPT:
            yield from self._in_given_scripts(words)
        if program in FETCHES:
            yield from self._in_fetching(program, rest)
        elif program in AWK:
            yield from self._in_awk(rest)
        elif program in SED:
            yield from self._in_sed(rest)
        elif program in SHELLS:
            yield from self._in_shell(rest)
        elif program in ("eval", "trap"):
            yield from self._in_words(rest)
            script = " ".join(word.text for word in (rest if program == "eval" else rest[:1]))
            yield from self._in_inner_script(script)
        elif program == "printenv":
            names = [word.text for word in rest if not word.text.startswith("-")]
            yield from (Doubt(name, True) for name in names if name not in self._known)
            yield from () if names else (Doubt(_WHOLE_ENVIRONMENT),)
        elif program == "cd":
            yield from self._in_cd(rest)
        elif program == "envsubst":
            yield from self._in_words(rest)
            yield from () if rest else (Doubt(_WHOLE_ENVIRONMENT),)
            yield from (Doubt(name, True) for word in rest for name in _unknown(word.text, self._known))
        elif program == "jq":
            yield from self._in_words(rest)
            yield from (Doubt(name, True) for word in rest for name in variables_of_jq(word.text, self._known))
        elif program in _TESTS:
            yield from self._in_words(rest)
            asked = (word for before, word in pairwise(rest) if before.text == "-v")
            found = (match.group() for word in asked if (match := _NAME.match(word.text)))
            yield from (Doubt(name, True) for name in found if name not in self._known)
        elif program == "compgen" or (program == "set" and not rest):
            yield Doubt(_WHOLE_ENVIRONMENT)
        elif program == "dirname" and any(map(self._names_own_folder, rest)):
            yield Doubt(_OWN_FOLDER, True)
        else:
            yield from self._in_words(rest, takes_slash=program in _TAKES_SLASH)
            if is_interpreter(program):
                yield from (doubt for word in rest if word.quoted for doubt in _of_language(word.text, self._known))

    def _in_cd(self, words: list[Word]) -> Iterator[Doubt]:
        """Without a folder it goes home, and with a dash back to where it was, or the shell before it."""
        yield from self._in_words(words)
        places = [word.text for word in words if word.text == "-" or not word.text.startswith("-")]
        if not places:
            yield Doubt("~")
        if places == ["-"] and _FORMER_FOLDER not in self._known:
            yield Doubt(_FORMER_FOLDER, True)
        self._known.add(_FORMER_FOLDER)

    def _in_given_scripts(self, words: list[Word]) -> Iterator[Doubt]:
        """Commands that are given to a starter as a text."""
        for word in words[1:]:
            if word.quoted and " " in word.text:
                yield from self._in_inner_script(word.text)

    def _in_fetching(self, program: str, words: list[Word]) -> Iterator[Doubt]:
        """What it names, or else that it is run: what it gets may be named without a scheme, or in a file."""
        yield from self._in_words(words)
        if not words or any(word.text not in _ABOUT_ITSELF for word in words):
            yield Doubt(program, is_program=True)

    def _names_own_folder(self, word: Word) -> bool:
        """Whether the path of the job's folder is put into the word."""
        for each in word.expansions:
            if isinstance(each, Variable) and each.name in self._own_folder:
                return True
            if isinstance(each, Substitution) and any(_is_pwd(command) for command in each.commands):
                return True
        return False

    def _in_awk(self, words: list[Word]) -> Iterator[Doubt]:
        script_given, value_of = False, ""
        for word in words:
            if value_of:
                yield from self._in_word(word, takes_slash=value_of == "-F")
                script_given |= value_of == "-f"
                value_of = ""
            elif word.text in ("-F", "-v", "-f"):
                value_of = word.text
            elif script_given or word.text.startswith("-"):
                yield from self._in_word(word)
            else:
                script_given = True
                yield from self._in_expansions(word.expansions)
                yield from (doubt for text in _AWK_TEXT.findall(word.text) for doubt in doubts_of_text(text))
                yield from (Doubt(name, True) for name in variables_read_in(word.text, self._known))

    def _in_sed(self, words: list[Word]) -> Iterator[Doubt]:
        options = [_SED_OPTION.fullmatch(word.text) for word in words]
        script_given = any(options) or any(_SED_FILE.fullmatch(word.text) for word in words)
        script_next = False
        for word, option in zip(words, options, strict=True):
            script = word.text if script_next else option.group(1) if option else ""
            if not script and not script_given and not word.text.startswith("-"):
                script_given, script = True, word.text
            script_next = not script_next and option is not None and not script
            if script:
                yield from self._in_expansions(word.expansions)
                if "/" in script and not only_changes_lines(script):
                    yield Doubt(script)
            else:
                yield from self._in_word(word)

    def _in_shell(self, words: list[Word]) -> Iterator[Doubt]:
        inner = False
        for word in words:
            yield from self._in_expansions(word.expansions)
            if inner:
                yield from self._in_inner_script(word.text)
            else:
                yield from self._in_text(word)
            inner = re.fullmatch(r"-\w*c", word.text) is not None

    # Words

    def _in_words(self, words: Iterable[Word], *, takes_slash: bool = False) -> Iterator[Doubt]:
        for word in words:
            yield from self._in_word(word, takes_slash=takes_slash)

    def _in_word(self, word: Word, *, takes_slash: bool = False) -> Iterator[Doubt]:
        yield from self._in_expansions(word.expansions)
        yield from self._in_text(word, takes_slash=takes_slash)

    def _in_text(self, word: Word, *, takes_slash: bool = False) -> Iterator[Doubt]:
        bare = word.text.partition("=")[2] if _assigned(word) else word.text
        if bare and not bare.strip("/") and not takes_slash:
            yield Doubt(bare)
        if not word.quoted and word.text != "=~" and _IN_HOME.search(word.text):
            yield Doubt(word.text)
        if not word.quoted and _NOTHING_IN_BRACES.search(word.text):
            yield Doubt(word.text)
        yield from doubts_of_text(word.text)
        if word.quoted:
            yield from (Doubt(name, True) for name in variables_read_in(word.text, self._known))

    def _in_expansions(self, expansions: Iterable[Expansion]) -> Iterator[Doubt]:
        for each in expansions:
            if isinstance(each, Variable):
                yield from self._in_variable(each)
            elif isinstance(each, Substitution):
                yield from _ScriptNames(self._known, self._own_folder).in_commands(each.commands)
            else:
                yield from self._in_arithmetic(each)

    def _in_variable(self, variable: Variable) -> Iterator[Doubt]:
        if variable.indirect or (_NAME.fullmatch(variable.name) and variable.name not in self._known):
            yield Doubt(variable.name, True)
        if variable.name in self._own_folder and _cuts(variable):
            yield Doubt(variable.name, True)
        if variable.operand is not None:
            yield from self._in_expansions(variable.operand.expansions)
            if variable.is_text:
                yield from self._in_text(variable.operand)
        if variable.is_set:
            self._known.add(variable.name)

    def _in_arithmetic(self, arithmetic: Arithmetic) -> Iterator[Doubt]:
        yield from self._in_expansions(arithmetic.expansions)
        self._known.update(_SET_IN_ARITHMETIC.findall(arithmetic.text))
        for name in _NAME_IN_ARITHMETIC.findall(arithmetic.text):
            if name not in self._known:
                yield Doubt(name, True)


def _unknown(text: str, known: set[str]) -> list[str]:
    return [name for name in _SHELL_VARIABLE.findall(text) if name not in known]


def _cuts(variable: Variable) -> bool:
    """Whether a part of its value is taken: of the path of a folder, that is the path of a folder above."""
    return variable.operand is not None and bool(variable.operand.text) and not variable.is_text


def _is_pwd(command: Command) -> bool:
    return bool(command.words) and command.words[0].text == "pwd"


def _assigned(word: Word) -> str:
    """The variable that a word sets, or nothing."""
    found = _ASSIGNMENT.fullmatch(word.text)
    return found.group(1) if found else ""


def _hides_outer(command: str, options: str) -> bool:
    """Whether a variable that is declared without a value does not have the one from outside: it is a function's own,
    or an array."""
    return command == "local" or any(kind in options for kind in "aA")


def _whole_name(word: Word) -> str:
    return word.text if _NAME.fullmatch(word.text) else ""


def _names_read_into(words: list[Word]) -> Iterator[str]:
    """The variables that a command sets by their names."""
    program = program_of(words[0])
    for before, word in pairwise(words):
        sets = program in _READS_INTO or (program == "printf" and before.text == "-v")
        if sets and (name := _whole_name(word)):
            yield name
