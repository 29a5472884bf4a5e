"""Parses the output file of a shell job: lines `key=value`, or several lines between `key<<END` and `END`.

What is data and what is text is said in core/model/text_data. Values too large to travel are spilled to files.
The job may have put anything in the file's place, so nothing but a plain file is read, and never more than a bound."""

import errno
import hashlib
import os
import re
import stat

import msgspec

from mendflow.core.model.exact_json import InexactJson, InexactNumber, decode_as_written
from mendflow.core.model.references import malformed_reference, references_in
from mendflow.core.model.text_data import data_or_text
from mendflow.core.model.values import VALUE_BYTES_MAX, FileRef, Value, check_value, spilled_value

OUTPUT_BYTES_MAX = 64 << 20
LINES_MAX = 100_000
"""Maximum number of lines with a value: a job with more should leave a data file."""

_OPENING = re.compile(r"\s*([^=<\s]+)<<(\S+)\s*")
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_REFERENCE_BYTES_MAX = len(
    msgspec.json.encode(spilled_value(FileRef(sha256="0" * 64, bytes=OUTPUT_BYTES_MAX, name="value.json")))
)


class BadOutput(ValueError):
    """The output file is invalid; the message names the line."""


class OutputNotes:
    """What is to be told of outputs that were read: keys of which the last value counts, and numbers in JSON that are
    written in another way than they were, by their keys."""

    def __init__(self) -> None:
        self.repeated: set[str] = set()
        self.reworded: dict[str, str] = {}

    def sentences(self) -> list[str]:
        told = [
            f"$MENDFLOW_OUTPUT has several values for `{key}`; the last one counts" for key in sorted(self.repeated)
        ]
        for key, text in sorted(self.reworded.items()):
            told.append(f'`{key}` in $MENDFLOW_OUTPUT: in JSON {text} is a number; for a text write "{text}"')
        return told


def parse_outputs(text: str, notes: OutputNotes | None = None) -> dict[str, Value]:
    """The values by their keys. Of a key that is given again the last value counts."""
    outputs: dict[str, Value] = {}
    found = notes or OutputNotes()

    def put(key: str, text: str, line: int) -> None:
        value = _value(text, line)
        if isinstance(value, list | dict) and (number := _reworded_number(key, text, line)):
            found.reworded[key] = number
        if outputs.get(key, value) != value:
            found.repeated.add(key)
        outputs[key] = value

    lines = text.split("\n")
    at = given = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if not line.strip():
            continue
        given += 1
        if given > LINES_MAX:
            raise BadOutput(f"line {at}: it gives more than {LINES_MAX} values: leave large data in a file of the job")
        opening = _OPENING.fullmatch(line) if "<<" in line else None
        if opening:
            key, end = opening.groups()
            try:
                close = lines.index(end, at)
            except ValueError:
                raise BadOutput(f"line {at}: `{key}<<{end}` has no closing line `{end}`") from None
            put(_key(key, at), "\n".join(lines[at:close]), at)
            at = close + 1
            continue
        key, equals, value = line.partition("=")
        if not equals:
            raise BadOutput(f"line {at}: expected `key=value`, found {line[:80]!r}")
        put(_key(key.strip(), at), value.rstrip("\r"), at)
    return outputs


def _key(text: str, line: int) -> str:
    if not _KEY.fullmatch(text):
        raise BadOutput(f"line {line}: {text[:80]!r} is not a name: use letters, digits, `_`, `-` and `.`")
    return text


def _value(text: str, line: int) -> Value:
    try:
        value = data_or_text(text)
    except RecursionError:
        raise BadOutput(f"line {line}: the value is nested too deep") from None
    if why := check_value(value) or malformed_reference(value):
        raise BadOutput(f"line {line}: {why}")
    return value


def _reworded_number(key: str, text: str, line: int) -> str:
    """The first number of a list or map that would be written in another way, such as `1.10`. A map with a key twice is
    refused: which value counts is not clear, and JSON's readers differ."""
    try:
        pending = [decode_as_written(text)]
    except InexactJson as error:
        raise BadOutput(f"line {line}: `{key}`: {error}") from None
    while pending:
        part = pending.pop()
        if isinstance(part, InexactNumber):
            return part.text
        pending += part[::-1] if isinstance(part, list) else [*part.values()][::-1] if isinstance(part, dict) else []
    return ""


def read_outputs(path: str, notes: OutputNotes | None = None) -> dict[str, Value] | None:
    """The outputs in a file, or None if the job left none."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):  # a link, or a socket
            raise BadOutput("it is not a plain file") from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise BadOutput("it is not a plain file")
    with os.fdopen(descriptor, "rb") as file:
        content = file.read(OUTPUT_BYTES_MAX + 1)
    if len(content) > OUTPUT_BYTES_MAX:
        raise BadOutput(f"it has more than {OUTPUT_BYTES_MAX} bytes: leave large data in a file of the job")
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        shown = content[error.start : error.start + 1].hex()
        raise BadOutput(f"line {line}: it is not UTF-8 text (byte 0x{shown}): leave other data in a file") from None
    return parse_outputs(text.replace("\r\n", "\n"), notes)


def spill(content: bytes, folder: str, serial: int) -> tuple[dict[str, Value], str]:
    """Write a value's JSON to a file in the attempt's folder; returns its placeholder and the path."""
    path = os.path.join(folder, f".mendflow.value{serial}.json")
    try:
        os.unlink(path)  # the job may have put a link there
    except FileNotFoundError:
        pass
    with os.fdopen(
        os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600), "wb"
    ) as file:
        file.write(content)
    digest = hashlib.sha256(content).hexdigest()
    return spilled_value(FileRef(sha256=digest, bytes=len(content), name="value.json")), path


def within_bounds(outputs: dict[str, Value], folder: str) -> tuple[dict[str, Value], list[str]]:
    """The outputs with the largest values spilled until the rest is within the limit, and the paths of the spilled
    files. A value smaller than a reference is not spilled; nor is one that refers to files, as the server could not see
    which."""
    whole = len(msgspec.json.encode(outputs))
    if whole <= VALUE_BYTES_MAX:
        return outputs, []
    sizes = sorted(((len(msgspec.json.encode(value)), key) for key, value in outputs.items()), reverse=True)
    doomed: list[str] = []
    left = whole
    for size, key in sizes:
        if left <= VALUE_BYTES_MAX or size <= _REFERENCE_BYTES_MAX:
            break
        doomed.append(key)
        left -= size - _REFERENCE_BYTES_MAX
    if left > VALUE_BYTES_MAX:
        raise BadOutput(
            f"it has {len(outputs)} values of {whole} bytes in all, too many to keep each by itself and more than the"
            f" {VALUE_BYTES_MAX} bytes that may travel: leave them in a file of the job, or as one value"
        )
    kept = dict(outputs)
    paths: list[str] = []
    for key in doomed:
        if any(True for _ in references_in(outputs[key])):
            raise BadOutput(f"`{key}` refers to files and is too large to travel: give the files one by one")
        kept[key], path = spill(msgspec.json.encode(outputs[key]), folder, len(paths))
        paths.append(path)
    assert len(msgspec.json.encode(kept)) <= VALUE_BYTES_MAX, "a reference is longer than it can be"
    return kept, paths
