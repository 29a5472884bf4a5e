"""Where Python, what is installed with it and this package are: jobs that are Python functions need all of it.

A virtual environment has only a link to the Python that it was made with, which may lead over further links, and
through folders that are links: a sandbox shows all that stands on that way."""

import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

LINKS_MAX: Final = 40
_FOR_PACKAGES: Final = ("site-packages", "dist-packages")
_SHARED: Final = frozenset({"/", "/usr", "/usr/local"})


class UnreachedPython(NamedTuple):
    """A part of the installation that other accounts do not reach, and the folder that does not let them pass."""

    place: str
    closed: str


def installation(*, for_others: bool) -> dict[str, str]:
    """What a sandbox shows of it: where it is to be seen, and where it is; `for_others`: as far as other accounts get
    there."""
    found = {path: os.path.realpath(path) for place in _places() for path in (place, os.path.realpath(place))}
    found |= {path: os.path.realpath(path) for path in _interpreters()}
    return {path: real for path, real in found.items() if not for_others or _closed_folder(real) is None}


def unreached_python() -> UnreachedPython | None:
    """What of it other accounts do not reach, if that is so."""
    for place in (os.path.realpath(sys.executable), *_places()):
        if (closed := _closed_folder(os.path.realpath(place))) is not None:
            return UnreachedPython(place, closed)
    return None


def _places() -> list[str]:
    package = str(Path(__file__).absolute().parents[3])
    installed = [place for place in sys.path if os.path.basename(place) in _FOR_PACKAGES]
    places = (sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix, *installed, package)
    return [place for place in dict.fromkeys(places) if place not in _SHARED and os.path.exists(place)]


def _interpreters() -> Iterator[str]:
    """The links from the interpreter to what it is; the folder of one may have anything else in it."""
    path = os.path.abspath(sys.executable)
    for _ in range(LINKS_MAX):
        if not os.path.islink(path):
            return
        path = os.path.normpath(os.path.join(os.path.dirname(path), os.readlink(path)))
        if os.path.exists(path):
            yield path


def _closed_folder(place: str) -> str | None:
    """The first folder on the way there that does not let others pass."""
    for path in (*reversed(Path(place).parents), Path(place)):
        try:
            if not path.stat().st_mode & stat.S_IXOTH:
                return str(path)
        except OSError:
            return str(path)
    return None
