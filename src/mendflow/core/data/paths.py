"""Validates names and paths: nothing that a job or the catalogue names can leave its storage element.

Two checks ensure that. Names and paths are checked part by part, as plain text, and everything that another program
could interpret differently is refused: `..`, a backslash, a percent-encoded character, `::`, which chains file systems.
And the resulting place must start, character by character, with the element's own URL, after all rules. What was
checked is what is used; only slashes that rules have doubled are merged."""

import re
from typing import Final

from mendflow.core.model.data import LOGICAL_PREFIX
from mendflow.core.model.errors import InvalidRequest
from mendflow.lazy import lazy_pattern

NAME_CHARS_MAX: Final = 500
"""Some stores limit document ids to about this length."""

PATH_CHARS_MAX: Final = 1_000
PART_BYTES_MAX: Final = 255
LOGICAL_PART: Final = lazy_pattern(r"[\w.+=,@:~() -]+", re.ASCII)
_HIDDEN: Final = lazy_pattern(r"%[0-9A-Fa-f]{2}")
_SCHEME: Final = lazy_pattern(r"[A-Za-z][A-Za-z0-9+.-]*://")


class OutsideElement(InvalidRequest):
    """A name or a place outside the storage element."""

    code = "outside-element"


def name_flaw(name: str) -> str:
    """Why this is not a valid logical name; empty if it is."""
    if not name.startswith("/"):
        return "it must begin with `/`, such as /store/raw/a.dat"
    if len(name) > NAME_CHARS_MAX:
        return f"it has {len(name)} characters; at most {NAME_CHARS_MAX} are taken"
    if flaw := path_flaw(name[1:]):
        return flaw
    for part in name[1:].split("/"):
        if not LOGICAL_PART.fullmatch(part) or part != part.strip():
            return f"{part!r:.80} cannot be a part of it: use letters, digits, spaces inside, and _ . + = , @ : ~ ( ) -"
    return ""


def path_flaw(path: str) -> str:
    """Why this is not a valid path below an element; empty if it is."""
    if len(path) > PATH_CHARS_MAX:
        return f"it has {len(path)} characters; at most {PATH_CHARS_MAX} are taken"
    for part in path.split("/"):
        if flaw := _part_flaw(part):
            return flaw
    if "::" in path or _SCHEME.search(path):
        return "it holds `::` or `://`, which would lead to another place"
    return ""


def _part_flaw(part: str) -> str:
    if not part:
        return "it is empty, begins or ends with `/`, or has `//` in it"
    if part in (".", ".."):
        return f"it has `{part}` as a part, which leads elsewhere"
    if hidden := _HIDDEN.search(part):
        return f"it has {hidden.group()} in it, which some would read as another character"
    if not part.isprintable():
        return f"{part!r:.80} holds a character that cannot be shown"
    if bad := next((each for each in "\\?#*[]{}" if each in part), ""):
        return f"it has `{bad}` in it, which means something else in places"
    return f"{part!r:.80} is too long" if len(part.encode()) > PART_BYTES_MAX else ""


def logical_name(source: str) -> str:
    """The name in `lfn:/store/a`, or a plain name. Raises InvalidRequest if it is invalid."""
    name = source.removeprefix(LOGICAL_PREFIX)
    if flaw := name_flaw(name):
        raise InvalidRequest(f"{name!r:.200} is not a logical name: {flaw}", field="name")
    return name


def root_of(url: str) -> str:
    """What every place of an element starts with, before the slash."""
    root = url.rstrip("/")
    return f"{root}//" if root.endswith(":") else root


def place_below(url: str, path: str) -> str:
    """The place of a path below an element's URL. Raises OutsideElement."""
    if flaw := path_flaw(path):
        raise OutsideElement(f"{path!r:.200} is no path below {url}: {flaw}", field="path")
    return f"{root_of(url)}/{path}"


def path_inside(url: str, place: str) -> str:
    """The path of a place below an element's URL. Raises OutsideElement if a rule's result is outside."""
    root = root_of(url) + "/"
    if not place.startswith(root):
        raise OutsideElement(f"{place!r:.300} is not below {url}; fix the rules, or the element's URL", field="rules")
    path = re.sub("/{2,}", "/", place[len(root) :].lstrip("/"))
    if flaw := path_flaw(path):
        raise OutsideElement(f"{place!r:.300} leads out of {url}, or is ambiguous: {flaw}", field="rules")
    return path


def url_flaw(url: str) -> str:
    """Why this is not a valid URL of an element; empty if it is."""
    scheme = _SCHEME.match(url)
    if scheme is None:
        return "it needs a protocol, such as file:///data or s3://bucket/prefix"
    if "::" in url or _SCHEME.search(url, scheme.end()):
        return "it chains two places; give one"
    if not url.isprintable() or "\\" in url or len(url) > PATH_CHARS_MAX:
        return f"it holds a character that cannot be shown, a backslash, or more than {PATH_CHARS_MAX} characters"
    rest = url[scheme.end() :]
    if any(part in (".", "..") for part in rest.split("/")):
        return "it has `.` or `..` as a part; write where it really is"
    if "@" in rest.split("/", maxsplit=1)[0] and ":" in rest.split("@", maxsplit=1)[0]:
        return "it holds a password; give it among the options, as env:NAME"
    return ""
