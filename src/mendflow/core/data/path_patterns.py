"""Paths that mean several files: a folder, whose path ends with `/`, or a pattern with `*`, `?` or `[...]`."""

from typing import Final

from mendflow.lazy import lazy_pattern

SIGNS: Final = lazy_pattern(r"[*?\[]")
OWN_FOLDER: Final = "./"
CHARACTERS: Final = lazy_pattern(r"\[!?\]?[^\]]*\]")


def is_pattern(path: str) -> bool:
    return SIGNS.search(path) is not None


def means_many(path: str) -> bool:
    """Whether a path in a flow file means a list of files."""
    return path.endswith("/") or is_pattern(path)


def is_own_folder(path: str) -> bool:
    """Whether a path is the job's folder itself, as `./` and `.` are."""
    return path.startswith(".") and all(part in ("", ".") for part in path.split("/"))


def fixed_folder(path: str) -> str:
    """The folder that all files of a folder or a pattern are below: as far as the path has no sign; empty for none."""
    folder = SIGNS.split(path, maxsplit=1)[0].rpartition("/")[0]
    return folder.strip("/")


def name_below(path: str, folder: str) -> str:
    """The path as seen from that folder."""
    return path.removeprefix(f"{folder}/") if folder else path


def pattern_flaw(pattern: str) -> str:
    """Why no path could be meant by a pattern, or another one than its author thinks; empty if it is sound."""
    if not pattern or not pattern.isprintable():
        return "it is empty, or holds a character that cannot be shown; write one such as *.csv"
    if pattern.startswith("/") or ".." in pattern.split("/"):
        return "it is for paths inside the watched folder; begin with a name or with *"
    if "{" in pattern or "}" in pattern:
        return "braces are no alternatives here; use *, ? and [...]"
    return "it has a [ that no ] closes" if "[" in CHARACTERS.sub("", pattern) else ""
