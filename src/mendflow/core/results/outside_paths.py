"""Places outside of a job's folder that a text names: absolute paths, folders above, home folders, URLs.

In doubt it is one. A slash begins a path wherever no name stands before it, whatever follows; only a few places are
known to be no data, and only if they are named exactly."""

from collections.abc import Collection, Iterator
from typing import Final

from mendflow.core.results.shell_reader import PUT_IN
from mendflow.lazy import lazy_pattern

_IN_NAMES: Final = rf"\w.*?\]}})/$~\-{PUT_IN}"
"""Characters that may stand before a slash inside a path; before any other one, a path begins at the slash."""

_URL = lazy_pattern(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s\"']*")
_TOKEN_END = lazy_pattern(r"[\s\"'`;|&<>(),:]")
_BEGINNING = lazy_pattern(rf"(?<![{_IN_NAMES}])/|(?:^|(?<=\s))-[A-Za-z](?=/[^\s\"'/])")
_ABOVE = lazy_pattern(rf"(?<![\w.*?$%+@\-{PUT_IN}}}\])])\.\.(?![\w.*?$%+@\-{PUT_IN}{{\[(])")
_HOME = lazy_pattern(r"(?<![\w.*?/$%+@\-])~\w*/")
_MARKUP = lazy_pattern(r"</[A-Za-z][\w:.-]*\s*>|\s?/>")
_ALONE = lazy_pattern(r"/+(?=\s|$|[\"'`])")
_PROGRAM = lazy_pattern(r"(?:/usr(?:/local)?)?/s?bin/[\w+-][\w.+-]*")
_STREAM = lazy_pattern(r"/dev/(?:null|zero|stdin|stdout|stderr|fd/\d+)")

_ENVIRONMENT = lazy_pattern(
    r"(?:\b[Ee]nviron\b|\bENVIRON\b|\bgetenv\b|\bprocess\.env\b|\bENV(?=\s*[\[{]))"
    r"(?:\s*\.\s*(?:get|pop)\b)?\s*[\[({.]*\s*[\"']?([A-Za-z_]\w*)?"
)


def places_in(text: str) -> Iterator[str]:
    """The places that a text of any language names. A slash that stands alone, and a tag of markup, are none."""
    yield from (found.group() for found in _URL.finditer(text))
    rest = _MARKUP.sub(" ", _URL.sub(" ", text))
    for found in _BEGINNING.finditer(rest):
        start = found.end() - (found.group() == "/")
        token = token_at(rest, start)
        if not (_ALONE.match(rest, start) or is_known_place(token)):
            yield token if "{" in token else token.rstrip("}")
    for found in (*_ABOVE.finditer(rest), *_HOME.finditer(rest)):
        yield token_at(rest, found.start())


def token_at(text: str, start: int) -> str:
    """The text from here to the end of the path."""
    end = _TOKEN_END.search(text, start + 1)
    return text[start : end.start() if end else len(text)]


def is_known_place(path: str) -> bool:
    """Whether the path is exactly that of a stream, or of a program of the system."""
    return _STREAM.fullmatch(path) is not None or _PROGRAM.fullmatch(path) is not None


def variables_read_in(text: str, known: Collection[str]) -> Iterator[str]:
    """The environment variables that a program in another language reads, but for those that are known."""
    for found in _ENVIRONMENT.finditer(text):
        name = found.group(1)
        if name not in known:
            yield name or found.group().strip()
