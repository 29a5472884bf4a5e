"""Takes a shell script apart into commands and words, as far as one must to see what it names.

Nothing is put in the place of anything: a word keeps its literal text, quoted or not, with a mark where a variable or a
command would be put in, and a list of what that is. Whatever is not understood stays a word, so nothing is overlooked:
at worst a word is read that the shell would not see as one."""

import re
from typing import Final, NamedTuple, Union

from mendflow.lazy import lazy_pattern

PUT_IN: Final = "\x01"
"""Stands in a word's text for what the shell puts in its place."""

SCRIPT_CHARS_MAX: Final = 200_000
"""A longer script is not read: whoever submits a job waits for this."""

_NAME = lazy_pattern(r"[A-Za-z_]\w*")
_PARAMETER = lazy_pattern(r"([!#]?)([A-Za-z_]\w*|\d+|[@*#?$!-])(\[[^\]]*\])?")
_PLAIN_RUN = lazy_pattern(r"[^ \t\r\n;&|()<>\\'\"$`]+")
_QUOTED_RUN = lazy_pattern(r"[^\\\"$`]+")
_ANSI_ESCAPE = lazy_pattern(
    r"\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([0-7]{1,3})|c.|(.))", re.DOTALL
)
UNICODE_MAX: Final = 0x10FFFF
_ANSI_CHARACTERS: Final = dict(zip("ntrabfveE", "\n\t\r\a\b\f\v\x1b\x1b", strict=True))
_BLANKS = lazy_pattern(r"(?:[ \t\r]|\\\n)+")
_ENDS_WORD: Final = frozenset(" \t\r\n;&|()<>")
_SPECIAL: Final = "@*#?$!-"
_BEFORE_COMMAND: Final = frozenset({"if", "then", "else", "elif", "do", "while", "until", "!", "{", "for"})
_GIVES_TEXT: Final = ("-", ":-", "=", ":=", "+", ":+", "?", ":?")


class UnreadableScript(ValueError):
    """The message says what is wrong with it."""


def _unescaped(escape: re.Match[str]) -> str:
    """The character that stands for an escape in $'...'."""
    byte, short, long, octal, char = escape.groups()
    if char:
        return _ANSI_CHARACTERS.get(char, char)
    code = int(octal, 8) if octal else int(byte or short or long or "20", 16)
    return chr(code) if code <= UNICODE_MAX else " "


class Variable(NamedTuple):
    """A variable that is read. `operand` is the text that may stand in its place, or the pattern that it is cut by:
    `is_text` tells which. `indirect`: not its value is put in, but that of the variable that it names."""

    name: str
    operand: "Word | None" = None
    is_text: bool = False
    indirect: bool = False
    is_set: bool = False


class Substitution(NamedTuple):
    """Commands whose output is put in."""

    commands: "list[Command]"


class Arithmetic(NamedTuple):
    """An arithmetic expression, with what is put in there."""

    text: str
    expansions: "list[Expansion]"


Expansion = Union[Variable, Substitution, Arithmetic]


class Word(NamedTuple):
    text: str
    quoted: bool
    expansions: list[Expansion]


class HereDocument(NamedTuple):
    text: str
    expansions: list[Expansion]


class Command(NamedTuple):
    """The words of a simple command, what its input and output are redirected to, and the texts that it reads. A
    bare arithmetic command has no words. `end` is the character of an operator or the line's end behind it; between two
    characters of one operator stands a command with nothing in it."""

    words: list[Word]
    redirections: list[Word]
    documents: list[HereDocument]
    arithmetic: list[Arithmetic]
    end: str = ""


def read_script(text: str) -> list[Command]:
    """The commands of a script, in the order of their text."""
    if len(text) > SCRIPT_CHARS_MAX:
        raise UnreadableScript(f"it has more than {SCRIPT_CHARS_MAX:,} characters")
    try:
        return _Reader(text).commands(inner=False)
    except RecursionError:
        raise UnreadableScript("it is nested too deep") from None


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._awaited: list[tuple[str, bool, bool, Command]] = []  # delimiters of texts that begin after this line

    def commands(self, *, inner: bool) -> list[Command]:
        """The commands up to the end, or, `inner`, up to the parenthesis that closes them."""
        found, current, depth = list[Command](), _command(), 0
        while self._at < len(self._text):
            if blank := _BLANKS.match(self._text, self._at):
                self._at = blank.end()
                continue
            char = self._text[self._at]
            if char == "#":
                self._at = self._end_of_line()
            elif self._text.startswith("((", self._at) and all(word.text in _BEFORE_COMMAND for word in current.words):
                current.arithmetic.append(self._arithmetic(2))
            elif char in "\n;&|()":
                self._at += 1
                depth += (char == "(") - (char == ")")
                if inner and depth < 0:
                    return [*found, current]
                found.append(current._replace(end=char))
                current = _command()
                if char == "\n":
                    self._documents()
            elif char in "<>":
                self._redirection(current)
            else:
                current.words.append(self._word())
        if inner:
            raise UnreadableScript("a parenthesis is not closed")
        self._documents()
        return [*found, current]

    def _end_of_line(self) -> int:
        end = self._text.find("\n", self._at)
        return end if end >= 0 else len(self._text)

    def _redirection(self, current: Command) -> None:
        text = self._text
        if text.startswith("<<", self._at) and not text.startswith("<<<", self._at):
            self._at += 2
            indented = text.startswith("-", self._at)
            self._at += indented
            self._skip_blanks()
            delimiter = self._word()
            self._awaited.append((delimiter.text, delimiter.quoted, indented, current))
            return
        while self._at < len(text) and text[self._at] in "<>&|":
            self._at += 1
        self._skip_blanks()
        if self._at < len(text) and text[self._at] not in _ENDS_WORD:
            current.redirections.append(self._word())

    def _skip_blanks(self) -> None:
        if blank := _BLANKS.match(self._text, self._at):
            self._at = blank.end()

    def _documents(self) -> None:
        """A line has ended: read the texts that begin after it."""
        awaited, self._awaited = self._awaited, []
        for delimiter, quoted, indented, command in awaited:
            lines: list[str] = []
            while self._at < len(self._text):
                end = self._end_of_line()
                line = self._text[self._at : end]
                self._at = end + 1
                if (line.lstrip("\t") if indented else line) == delimiter:
                    break
                lines.append(line)
            content = "\n".join(lines)
            inside = Word(content, True, []) if quoted else _Reader(content).quoted("")
            command.documents.append(HereDocument(inside.text, inside.expansions))

    def _word(self) -> Word:
        parts, quoted, expansions = list[str](), False, list[Expansion]()
        while self._at < len(self._text) and (char := self._text[self._at]) not in _ENDS_WORD:
            if run := _PLAIN_RUN.match(self._text, self._at):
                parts.append(run.group())
                self._at = run.end()
            elif char == "\\":
                quoted |= self._escaped(parts)
            elif char == "'":
                parts.append(self._single())
                quoted = True
            elif char == '"' or (char == "$" and self._text.startswith('$"', self._at)):
                self._at += 1 + (char == "$")
                inside = self.quoted('"')
                parts.append(inside.text)
                expansions += inside.expansions
                quoted = True
            elif char == "$" and self._text.startswith("$'", self._at):
                self._at += 2
                parts.append(self._ansi())
                quoted = True
            else:
                parts.append(self._expansion(expansions))
        return Word("".join(parts), quoted, expansions)

    def _escaped(self, parts: list[str]) -> bool:
        """A character after a backslash; False for a line that goes on."""
        after = self._text[self._at + 1 : self._at + 2]
        self._at += 2
        if after == "\n":
            return False
        parts.append(after)
        return True

    def _single(self) -> str:
        end = self._text.find("'", self._at + 1)
        if end < 0:
            raise UnreadableScript("a quotation mark is not closed")
        text = self._text[self._at + 1 : end]
        self._at = end + 1
        return text

    def _ansi(self) -> str:
        start = self._at
        while self._at < len(self._text):
            if self._text[self._at] == "'":
                self._at += 1
                return _ANSI_ESCAPE.sub(_unescaped, self._text[start : self._at - 1])
            self._at += 1 + (self._text[self._at] == "\\")
        raise UnreadableScript("a quotation mark is not closed")

    def quoted(self, closing: str) -> Word:
        """Text in which only variables and commands are put in, up to what closes it; the whole text if nothing
        does."""
        parts, expansions = list[str](), list[Expansion]()
        while self._at < len(self._text):
            char = self._text[self._at]
            if char == closing:
                self._at += 1
                return Word("".join(parts), True, expansions)
            if run := _QUOTED_RUN.match(self._text, self._at):
                parts.append(run.group())
                self._at = run.end()
            elif char == "\\" and self._text[self._at + 1 : self._at + 2] in ("$", "`", '"', "\\", "\n"):
                self._escaped(parts)
            elif char in "$`":
                parts.append(self._expansion(expansions))
            else:
                parts.append(char)
                self._at += 1
        if closing:
            raise UnreadableScript("a quotation mark is not closed")
        return Word("".join(parts), True, expansions)

    def _expansion(self, expansions: list[Expansion]) -> str:
        """What begins with a dollar or a backquote: its mark, or the text itself if nothing is put in."""
        text, at = self._text, self._at
        if text[at] == "`":
            expansions.append(self._backquoted())
        elif text.startswith("$((", at):
            expansions.append(self._arithmetic(3))
        elif text.startswith("$(", at):
            self._at += 2
            expansions.append(Substitution(self.commands(inner=True)))
        elif text.startswith("${", at):
            self._at += 2
            expansions.append(self._parameter())
        elif name := _NAME.match(text, at + 1):
            self._at = name.end()
            expansions.append(Variable(name.group()))
        elif text[at + 1 : at + 2] and (text[at + 1] in _SPECIAL or text[at + 1].isdigit()):
            self._at += 2
            expansions.append(Variable(text[at + 1]))
        else:
            self._at += 1
            return "$"
        return PUT_IN

    def _backquoted(self) -> Substitution:
        start = self._at = self._at + 1
        while self._at < len(self._text) and self._text[self._at] != "`":
            self._at += 1 + (self._text[self._at] == "\\")
        if self._at >= len(self._text):
            raise UnreadableScript("a backquote is not closed")
        inside = re.sub(r"\\([`\\$])", r"\1", self._text[start : self._at])
        self._at += 1
        return Substitution(_Reader(inside).commands(inner=False))

    def _arithmetic(self, opening: int) -> Arithmetic:
        """From its opening parentheses to those that close it."""
        start = self._at = self._at + opening
        depth = 0
        while self._at < len(self._text):
            char = self._text[self._at]
            if char == ")" and depth == 0:
                break
            depth += (char == "(") - (char == ")")
            self._at += 1
        inside = _Reader(self._text[start : self._at]).quoted("")
        if not self._text.startswith("))", self._at):
            raise UnreadableScript("an arithmetic expression is not closed")
        self._at += 2
        return Arithmetic(inside.text, inside.expansions)

    def _parameter(self) -> Variable:
        found = _PARAMETER.match(self._text, self._at)
        if found is None:
            raise UnreadableScript("what stands in `${...}` is no variable")
        prefix, name, index = found.groups()
        self._at = found.end()
        operator = next((sign for sign in sorted(_GIVES_TEXT, key=len, reverse=True) if self._follows(sign)), "")
        self._at += len(operator)
        operand = self._operand()
        indirect = prefix == "!" and index not in ("[@]", "[*]") and operand.text not in ("@", "*")
        inside = _Reader(index[1:-1]).quoted("").expansions if index else []
        return Variable(
            name,
            Word(operand.text, operand.quoted, [*inside, *operand.expansions]),
            is_text=bool(operator),
            indirect=indirect,
            is_set=operator.endswith("="),
        )

    def _follows(self, sign: str) -> bool:
        return self._text.startswith(sign, self._at)

    def _operand(self) -> Word:
        """The rest of `${...}`, up to the brace that closes it."""
        parts, expansions = list[str](), list[Expansion]()
        while self._at < len(self._text):
            char = self._text[self._at]
            if char == "}":
                self._at += 1
                return Word("".join(parts), True, expansions)
            if char == "\\":
                self._escaped(parts)
            elif char == "'":
                parts.append(self._single())
            elif char == '"':
                self._at += 1
                inside = self.quoted('"')
                parts.append(inside.text)
                expansions += inside.expansions
            elif char in "$`":
                parts.append(self._expansion(expansions))
            else:
                parts.append(char)
                self._at += 1
        raise UnreadableScript("a brace is not closed")


def _command() -> Command:
    return Command([], [], [], [])
