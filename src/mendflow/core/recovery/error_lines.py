"""What a program said went wrong, found in the end of what it printed.

An exit code says that something failed; the program's last words say what. Each language has its own way to say it: a
traceback whose last line names the exception, `Exception in thread`, `Error in f(x) :`, `command not found`. What was
raised goes before what merely looks like an error, and of several the last one is meant. Where nothing else is
recognised, a last line that says that something did not work is meant. Any other last line is ordinary output: standard
output and error are one stream, in the order written, and a line of it does not say which it was."""

import re
from collections.abc import Callable, Sequence
from typing import Final

from mendflow.lazy import lazy_pattern

ERROR_CHARS_MAX: Final = 400
LINES_READ_MAX: Final = 2_000
LINE_CHARS_MAX: Final = 600
"""Of a longer line its beginning and its end are looked at. Patterns take time with the square of a line's length, and
a slot that looks for the error of a job does nothing else meanwhile."""


_ESCAPES: Final = lazy_pattern(r"\x1b\[[0-9;?]*[A-Za-z]|\r")
_TYPE: Final = r"(?:[A-Za-z_][\w$]*(?:\.|::|/))*[A-Za-z_][\w$]*"
_RAISED: Final = lazy_pattern(rf"^(?:\s*\|\s*)?(?P<type>{_TYPE})(?:: ?(?P<message>.*))?$")
_THROWN: Final = lazy_pattern(
    r"^(?:Uncaught |Unhandled exception[:.] )?(?:[\w$]+[.:]+)*[A-Z][\w$]*(?:Error|Exception)\b.*"
)
_JAVA: Final = lazy_pattern(rf"^Exception in thread \"[^\"]*\" (?P<error>{_TYPE}(?::.*)?)$")
_CAUSED: Final = lazy_pattern(rf"^\s*Caused by: (?P<error>{_TYPE}(?::.*)?)$")
_STACK_LINE: Final = lazy_pattern(r"^\s+(at .+|\.\.\. \d+ (more|common frames omitted))$")
_R_ERROR: Final = lazy_pattern(r"^Error(?: in .+?)? ?: ?(?P<message>.*)$")
_PERL: Final = lazy_pattern(r"^.+ at \S+ line \d+\.$")
_PANIC: Final = lazy_pattern(r"^panic: .+")
_RUST_PANIC: Final = lazy_pattern(r"^thread '.*' (?:\(\d+\) )?panicked at ")
_WHAT: Final = lazy_pattern(r"^\s*what\(\):\s+(?P<message>.+)$")
_ASSERTION: Final = lazy_pattern(r".*: Assertion .+ failed\.?$")
_NOT_FOUND: Final = lazy_pattern(
    r"^.*: (?:command not found|not found|No such file or directory|Permission denied|cannot execute.*|Is a directory"
    r"|unbound variable|parameter not set|No space left on device|Exec format error|bad interpreter.*)$"
)
_NO_COMMAND: Final = lazy_pattern(r"^(?P<place>.*?(?:line )?\d+): (?P<name>[^\s:]+): (?:command )?not found$")
_OWN_SHELL: Final = lazy_pattern(r"(?:\S*/)?(?:sh|bash|dash|\S+\.script): (?:line )?\d+$")
"""A shell that runs the job's own command, and not a script that this calls."""

_WORD: Final = lazy_pattern(
    r"^(?:\S+: )?(?:\[?\b(?:fatal|error|critical|severe|failure)\b\]?(?: error)?)\s*(?::|\]|-|\s)", re.IGNORECASE
)
_LEVEL: Final = lazy_pattern(r"(?:^|[\s\[|])(?:ERROR|FATAL|CRITICAL|SEVERE)(?:[\s\]|:])")
_CRASH: Final = lazy_pattern(
    r"^.*\b(?:Segmentation fault|Bus error|Illegal instruction|Aborted|Killed)\b(?: \(core dumped\))?"
)
_DID_NOT_WORK: Final = lazy_pattern(
    r"\b(?:can(?:not|'t)|could(?: not|n't)|unable to|fail(?:ed|ure|ures|s)?|errors?|exception|refused|denied|rejected"
    r"|exceeded|timed[ -]?out|timeout|not found|no such|does(?: not|n't) exist|invalid|unreachable|abort(?:ed|ing)?"
    r"|connection (?:reset|closed|lost)|not (?:allowed|permitted|supported|enough)|out of (?:memory|space|range)"
    r"|too (?:many|few|large|long|small|short)|corrupt(?:ed)?)\b",
    re.IGNORECASE,
)
_NONE_OF_IT: Final = lazy_pattern(
    r"\b(?:0|no|zero|without(?: any)?) (?:\w+ )?(?:errors?|failures?|exceptions?|failed|rejected|corrupt(?:ed)?)\b"
    r"|\b(?:errors?|failures?|failed|rejected) ?[:=] ?0\b",
    re.IGNORECASE,
)
_END: Final = lazy_pattern(r" \((?:exit code|signal) \d+[^()]*\)$")
_TRACEBACK: Final = "Traceback (most recent call last):"
_POINTERS: Final = lazy_pattern(r"^[\s|^~+-]*$")


def raised_error(printed: str) -> str:
    """The error that a program told of, on one line; empty if nothing that it printed says that something is wrong."""
    lines = _lines(printed)
    for find in (_last_exception, _last_complaint, _last_words):
        if found := find(lines):
            return found[:ERROR_CHARS_MAX]
    return ""


def end_without_error(how: str, printed: str) -> str:
    """How a program ended that told of no error, with its last line as what it is: `it ended with exit code 3; its last
    line: 40 rows read`."""
    lines = _lines(printed)
    return f"{how}; its last line: {lines[-1].strip()[:ERROR_CHARS_MAX]}" if lines else how


def end_text(how: str, error: str) -> str:
    """The error first, then how the program ended: `KeyError: 'id' (exit code 1)`."""
    return f"{error} ({how})"


def without_end(message: str) -> str:
    """The message without how the program ended."""
    return _END.sub("", message)


def _lines(text: str) -> list[str]:
    lines = [line.rstrip() for line in _ESCAPES.sub("", text).split("\n")[-LINES_READ_MAX:]]
    return [line if len(line) <= LINE_CHARS_MAX else _shortened(line) for line in lines if line]


def _shortened(line: str) -> str:
    end = LINE_CHARS_MAX - ERROR_CHARS_MAX
    return f"{line[:ERROR_CHARS_MAX]}{line[-end:]}"


def _last_exception(lines: Sequence[str]) -> str:
    """What was raised last. An exception that was caused by another is told by its first cause."""
    found = ""
    for place, line in enumerate(lines):
        for recognise in _RECOGNISERS:
            if told := recognise(lines, place, line):
                found = told
                break
    return found


def _python(lines: Sequence[str], place: int, line: str) -> str:
    """The line after the frames of a traceback, which are indented."""
    if not line.endswith(_TRACEBACK):
        return ""
    bars = line[: -len(_TRACEBACK)].replace("+ Exception Group ", "").rstrip("+ ")
    for after in lines[place + 1 :]:
        told = after[len(bars) :] if bars and after.startswith(bars) else after
        if not told.startswith((" ", "|", "+")) and _RAISED.match(told) and not _POINTERS.match(told):
            return told.strip()
        if after.lstrip().startswith("| ") and not after.lstrip().startswith("|  ") and _RAISED.match(after):
            return after.strip().lstrip("| ")
    return ""


def _java(_lines: Sequence[str], _place: int, line: str) -> str:
    match = _JAVA.match(line) or _CAUSED.match(line)
    return match["error"] if match else ""


def _thrown(lines: Sequence[str], place: int, line: str) -> str:
    """`TypeError: x is not a function`, with a stack below it or nothing at all."""
    if not _THROWN.match(line):
        return ""
    below = lines[place + 1] if place + 1 < len(lines) else ""
    return line.strip() if not below or _STACK_LINE.match(below) else ""


def _r(lines: Sequence[str], place: int, line: str) -> str:
    """R puts a long message below the call that it is about; after it, R says that it halts."""
    match = _R_ERROR.match(line)
    if match is None or (" in " not in line and "Execution halted" not in lines[place + 1 : place + 6]):
        return ""
    below = lines[place + 1] if place + 1 < len(lines) else ""
    goes_on = not match["message"].strip() and below.startswith(" ")
    return f"{line.strip()} {below.strip()}" if goes_on else line.strip()


def _panic(lines: Sequence[str], place: int, line: str) -> str:
    if _PANIC.match(line):
        return line
    if _RUST_PANIC.match(line):
        below = lines[place + 1] if place + 1 < len(lines) else ""
        return f"panicked: {below.strip()}" if below and line.endswith(":") else line
    if match := _WHAT.match(line):
        thrown = re.search(r"instance of '([^']+)'", lines[place - 1]) if place else None
        return f"{thrown[1]}: {match['message']}" if thrown else match["message"]
    return ""


_RECOGNISERS: Final[tuple[Callable[[Sequence[str], int, str], str], ...]] = (_python, _java, _thrown, _r, _panic)


def _last_complaint(lines: Sequence[str]) -> str:
    """The last line that reads like an error. Each shell has its own words for a command that is not there."""
    found = next((line.strip() for line in reversed(lines) if any(each.search(line) for each in _COMPLAINTS)), "")
    missing = _NO_COMMAND.match(found)
    if missing is None:
        return found
    place = missing["place"].rstrip(": ")
    where = f" ({place})" if place and not _OWN_SHELL.match(place) else ""
    return f"command not found: {missing['name']}{where}"


def _last_words(lines: Sequence[str]) -> str:
    """The last line, if it says that something did not work. `12 files read, 0 failed` does not say that."""
    last = lines[-1].strip() if lines else ""
    return last if _DID_NOT_WORK.search(last) and not _NONE_OF_IT.search(last) else ""


_COMPLAINTS: Final = (_NOT_FOUND, _ASSERTION, _WORD, _LEVEL, _PERL, _CRASH)
