"""What annotations of parameters say: the type of a flow's input, and which parameters of a job are files."""

import inspect
import re
import types
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime, time
from pathlib import Path
from typing import Any, Final, Union, get_args, get_origin

from mendflow.core.model.flow import FILE, FILES, TABLE
from mendflow.core.model.moments import MOMENTS
from mendflow.formats.python.tables import Table

TYPES: Final[dict[Any, str]] = {
    str: "string",
    int: "number",
    float: "number",
    bool: "boolean",
    list: "list",
    tuple: "list",
    dict: "map",
    Path: FILE,
    Table: TABLE,
    datetime: "datetime",
    date: "date",
    time: "time",
}
NAMED_TYPES: Final = {**{kind.__name__: kind for kind in TYPES if TYPES[kind] not in MOMENTS}, "pathlib.Path": Path}
LISTS: Final = (list, tuple, Sequence, Iterable)
LIST_OF_PATHS: Final = re.compile(r"(?:list|tuple|List|Sequence|Iterable)\[\s*(?:pathlib\.)?Path\b.*")


def annotations_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The annotations of the parameters, by name; texts where they cannot be evaluated."""
    try:
        return inspect.get_annotations(function, eval_str=True)
    except Exception:  # noqa: BLE001 - the text of an annotation may raise anything
        return inspect.get_annotations(function)


def type_of(annotation: Any) -> str:
    """The input type for an annotation; empty for any."""
    if isinstance(annotation, str):
        if LIST_OF_PATHS.fullmatch(annotation.strip()):
            return FILES
        annotation = NAMED_TYPES.get(re.split(r"\s*[\[|]", annotation.strip(), maxsplit=1)[0])
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        members = [each for each in parts if each is not type(None)]
        found = type_of(members[0]) if members else ""
        return "" if found in MOMENTS and len(members) > 1 else found
    if origin in LISTS and parts and type_of(parts[0]) == FILE:
        return FILES
    return TYPES.get(origin or annotation, "") if isinstance(origin or annotation, type) else ""


def file_parameters(function: Callable[..., Any]) -> dict[str, str]:
    """The parameters that are files or lists of files."""
    kinds = {name: type_of(annotation) for name, annotation in annotations_of(function).items() if name != "return"}
    return {name: kind for name, kind in kinds.items() if kind in (FILE, FILES)}
