"""Functions of `os` that look at a path without opening it, made to tell of it: Python has no audit event for them."""

import functools
import os
from collections.abc import Callable
from typing import Any, Final

LOOKUPS: Final = ("stat", "lstat", "access", "readlink", "statvfs")
unrecorded_stat: Final = os.stat
"""For the worker's own looks at the modules of a flow."""

_SUPPORTED: Final[tuple[set[Any], ...]] = (
    *(os.supports_fd, os.supports_dir_fd),
    *(os.supports_effective_ids, os.supports_follow_symlinks),
)


def record_lookups(tell: Callable[[Any], None]) -> None:
    """From now on `tell` is called with each path that is looked at. `exists`, `is_file`, `realpath` and the like, also
    those of pathlib, use these functions by their names."""
    for name in LOOKUPS:
        recording = _recording(getattr(os, name), tell)
        setattr(os, name, recording)


def _recording(original: Callable[..., Any], tell: Callable[[Any], None]) -> Callable[..., Any]:
    @functools.wraps(original)
    def look(path: Any, *args: Any, **options: Any) -> Any:
        if options.get("dir_fd") is None:
            tell(path)
        return original(path, *args, **options)

    for supported in _SUPPORTED:  # where others ask what a function can do, the new one can do it too
        if original in supported:
            supported.add(look)
    return look
