"""Reads flow files from disk, with limits, and selects a flow in them."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

from mendflow.core.model.errors import BadFile, BadFlow, Problem
from mendflow.core.model.flow import Flow
from mendflow.lazy import LazyModule

if TYPE_CHECKING:
    from mendflow.formats import spelling
else:
    spelling = LazyModule("mendflow.formats.spelling")

TEXT_BYTES_MAX: Final = 10 * 1024 * 1024


def flow_text(path: Path, file_name: str, bytes_most: int = TEXT_BYTES_MAX) -> str:
    """The text of a flow file."""
    return decode_text(flow_bytes(path, file_name, bytes_most), file_name, bytes_most)


def flow_bytes(path: Path, file_name: str, bytes_most: int = TEXT_BYTES_MAX) -> bytes:
    """The content of a flow file. Its size is checked before anything is read."""
    try:
        size = path.stat().st_size
        if size > bytes_most:
            raise too_large_error(size, file_name, bytes_most)
        with path.open("rb") as file:
            # One byte more than allowed, so that a pipe or a growing file is detected as well.
            return file.read(bytes_most + 1)
    except OSError as error:
        if isinstance(error, IsADirectoryError):
            reason = "this is a folder; give the flow file in it"
        elif isinstance(error, FileNotFoundError):
            reason = "there is no such file"
        else:
            reason = f"it cannot be read: {error.strerror}"
        suggestion = ""
        if isinstance(error, FileNotFoundError) and path.parent.is_dir():
            suggestion = spelling.nearest_word(path.name, (each.name for each in path.parent.iterdir()))
        raise BadFlow(problems=[Problem(file=file_name, message=reason, suggestion=suggestion)]) from None


def decode_text(data: bytes, file: str, bytes_most: int = TEXT_BYTES_MAX) -> str:
    """The decoded text of a file."""
    if len(data) > bytes_most:
        raise too_large_error(len(data), file, bytes_most)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - (data.rfind(b"\n", 0, error.start) + 1) + 1
        message = f"this is not UTF-8 text: byte 0x{data[error.start]:02x} cannot stand here; save the file as UTF-8"
        raise BadFlow(problems=[Problem(file=file, line=line, column=column, message=message)]) from None


def too_large_error(size: int, file: str, bytes_most: int = TEXT_BYTES_MAX) -> BadFlow:
    message = (
        f"the file is {size / 1e6:.0f} MB; a flow file may have {bytes_most // (1024 * 1024)} MB. "
        "Give large data as a file that a job takes as its input"
    )
    return BadFlow(problems=[Problem(file=file, message=message)])


def select_flow(flows: dict[str, Flow], name: str, file_name: str) -> Flow:
    """The flow of that name, or the only one."""
    if name in flows:
        return flows[name]
    if not name and len(flows) == 1:
        return next(iter(flows.values()))
    if not flows:
        message, suggestion = "this file has no flow; mark a function with @flow", ""
    elif name:
        message, suggestion = f"there is no flow `{name}` in this file", spelling.nearest_word(name, flows)
    else:
        message = f"this file has several flows; choose one, as {file_name}:{next(iter(flows))}"
        suggestion = ""
    raise BadFlow(problems=[Problem(file=file_name, message=message, suggestion=suggestion)])


def settings_text(path: Path) -> str:
    """The same for a settings file. Raises BadFile."""
    try:
        return flow_text(path, str(path))
    except BadFlow as error:
        raise BadFile(problems=error.problems) from None
