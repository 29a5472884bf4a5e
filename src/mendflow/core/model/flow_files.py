"""The file that a flow was read from, kept for people beside the version of the flow that was made of it.

It says more than the model: comments, order, how things were written. No case runs from it. An editor begins the next
version with it, in which the passwords that are hidden here have to be written again."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from mendflow.core.model.ids import Instant
from mendflow.core.model.values import FileRef

FLOW_TEXT_MAX: Final = 1 << 20
"""Characters of a flow file that are kept; of a longer one it is said that it is longer."""


def file_flaw(file: str) -> str:
    """Why this is no plain path of a flow file, for whoever keeps or shows it; empty if it is one. It is asked when a
    flow is sent, as stored ones are of before."""
    if not file:
        return "it is empty"
    if not file.isprintable() or "\\" in file:
        return "it has a backslash or a character in it that cannot be shown"
    if file != file.strip():
        return "it begins or ends with a space"
    if not {"", ".", ".."}.isdisjoint(file.split("/")):
        return "it leads elsewhere: it begins or ends with `/`, or has `..`, `.` or nothing as a part"
    return ""


def plain_file_name(name: str) -> str:
    """The name of a file on somebody's machine, as a server takes it."""
    plain = "".join(each if each.isprintable() and each not in "/\\" else "_" for each in name).strip()
    return plain if plain not in ("", ".", "..") else "_"


class FlowSource(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A flow file as it comes with its flow: its name, or its path from somewhere, and its text. `left_out` says why
    there is no text."""

    file: Annotated[str, Meta(max_length=255)]
    text: Annotated[str, Meta(max_length=FLOW_TEXT_MAX)] = ""
    left_out: Annotated[str, Meta(max_length=1_000)] = ""


class FileBeside(msgspec.Struct, frozen=True, kw_only=True):
    """A file beside a flow file, by the path that the flow has for it. Without `file`, none was sent."""

    path: str
    file: FileRef | None = None


class FlowFileView(msgspec.Struct, frozen=True, kw_only=True):
    """The file of one version of a flow. Without `text`, `reason` says why there is none. Passwords in URLs are hidden
    in it, as everywhere else. `at` and `by`: who sent it, and when. `beside`: stored files that the flow
    refers to."""

    flow: str
    digest: str
    file: str = ""
    text: str = ""
    reason: str = ""
    at: Instant = 0
    by: str = ""
    beside: list[FileBeside] = []
