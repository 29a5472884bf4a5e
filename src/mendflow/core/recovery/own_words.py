"""What is an item's own: the element of its loops, the files that it was given, the texts that it was called with.

The same cause fails many items of a flow, and each message names its own: `no calibration for station dessau`. These
words are no part of the cause. What the whole flow has in common is nobody's own: the names of tasks, and the words
that a message has whatever it is about."""

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from mendflow.core.model.ids import item_name
from mendflow.core.model.jobs import JobSpec
from mendflow.core.model.values import Value, file_of
from mendflow.lazy import lazy_pattern

CHARS_MIN: Final = 3
CHARS_MAX: Final = 60
WORDS_MAX: Final = 40
COMMON: Final = frozenset(
    (
        "true",
        "false",
        "yes",
        "none",
        "null",
        "nan",
        "inf",
        "not",
        "the",
        "and",
        "for",
        "with",
        "from",
        "was",
        "are",
        "its",
        "last",
        "line",
        "ended",
        "exit",
        "code",
        "signal",
        "error",
        "errors",
        "failed",
        "failure",
        "file",
        "files",
        "such",
        "directory",
        "path",
        "cannot",
        "could",
        "found",
        "missing",
        "invalid",
        "input",
        "output",
        "data",
        "job",
        "task",
        "item",
        "command",
        "memory",
        "disk",
        "time",
        "out",
        "all",
        "any",
        "default",
        "name",
        "url",
        "hex",
        "address",
        "value",
    )
)
_TASK_WORD: Final = lazy_pattern(r"[^\W_][\w-]*")


def own_words(spec: JobSpec, flow: str = "") -> tuple[str, ...]:
    """The words that tell this job from others of its task, the longest first."""
    task = item_name(spec.item)
    common = {flow, task, *_TASK_WORD.findall(task)}
    return telling_words([*words_of_element(spec.element), *_of_files(spec), *_of_arguments(spec)], common)


def words_of_element(element: str) -> tuple[str, ...]:
    """The words of an element as it is shown, `dessau.csv` or `sample=s3, mode=fast`: each value, and its stem if it is
    the name of a file."""
    found: list[str] = []
    for part in element.split(", "):
        found += _with_stems(part)
        if "=" in part:
            found += _with_stems(part.partition("=")[2])
    return telling_words(found)


def has_word(text: str, words: Collection[str]) -> bool:
    """Whether one of the words stands in the text as a whole word."""
    return without_words(text, words, "\0") != text


def without_words(text: str, words: Collection[str], mark: str) -> str:
    """The text with a mark in place of each of the words. Part of a longer word is another word."""
    for word in words:
        place = text.find(word)
        while place >= 0:
            end = place + len(word)
            if _joins(text[place - 1 : place]) or _joins(text[end : end + 1]):
                place = text.find(word, place + 1)
                continue
            text = f"{text[:place]}{mark}{text[end:]}"
            place = text.find(word, place + len(mark))
    return text


def _joins(beside: str) -> bool:
    return beside.isalnum() or beside in ("_", "-")


def _of_files(spec: JobSpec) -> Iterator[str]:
    """Of files that are called otherwise in the job than where they come from: the others are the same for each."""
    for path, file in spec.inputs.items():
        if file.name != path.rpartition("/")[2]:
            yield from _with_stems(file.name)


def _of_arguments(spec: JobSpec) -> Iterator[str]:
    for value in (*spec.args, *spec.kwargs.values()):
        yield from _of_value(value)


def _of_value(value: Value) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif (file := file_of(value)) is not None:
        yield from _with_stems(file.name)


def _with_stems(name: str) -> tuple[str, ...]:
    """The name, and what is left of it without its ending, or all of them: `s3.fastq.gz`, `s3.fastq`, `s3`."""
    return name, name.rpartition(".")[0], name.partition(".")[0]


def telling_words(words: Collection[str], common: Collection[str] = ()) -> tuple[str, ...]:
    """Those of the words that may be left out of a message, the longest first."""
    kept = {word for word in words if _is_telling(word) and word not in common}
    return tuple(sorted(kept, key=lambda word: (-len(word), word))[:WORDS_MAX])


def _is_telling(word: str) -> bool:
    whole = CHARS_MIN <= len(word) <= CHARS_MAX and not word.endswith("...")
    return whole and word.lower() not in COMMON and any(char.isalpha() for char in word) and word.isprintable()


def own_places(context: Mapping[str, Value], element: str) -> tuple[str, ...]:
    """The paths of a context where the element of the item stands, and its place in the list: `case.data.file`,
    `case.data.index`."""
    case = context.get("case")
    data = case.get("data") if isinstance(case, dict) else None
    if not element or not isinstance(data, dict):
        return ()
    parts = {value for part in element.split(", ") for value in (part, part.partition("=")[2])} - {""}
    named = [name for name, value in data.items() if _shown(value) in parts]
    return ("job.element", "case.data.index", *(f"case.data.{name}" for name in named))


def _shown(value: Value) -> str:
    file = file_of(value)
    shown = file.name if file is not None else value
    if isinstance(shown, str):
        return shown.rstrip("/").rpartition("/")[2]
    return str(shown) if isinstance(shown, int | float) and not isinstance(shown, bool) else ""
