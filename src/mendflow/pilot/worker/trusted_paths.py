"""The places that a function may read without its result depending on anything that its job does not name: its own
folder, Python's installation, and the few files of the system that say nothing about data."""

import os
import re
import site
import sys
import sysconfig
from typing import Final

from mendflow.core.results.outside_paths import is_known_place
from mendflow.lazy import lazy_pattern

_SHARED_PREFIXES: Final = frozenset({"/", "/usr", "/usr/local", "/opt", "/opt/homebrew", "/opt/local"})
"""Where Python is installed among other things: below these only its own folders are Python's."""

_FOR_PACKAGES: Final = ("site-packages", "dist-packages")
_OF_THE_SYSTEM: Final = (
    *("/usr/share/zoneinfo", "/etc/localtime", "/etc/timezone", "/usr/share/locale", "/usr/lib/locale"),
    *("/usr/share/i18n", "/proc", "/sys", "/dev/urandom", "/dev/random", "/dev/tty", "/dev/fd", "/etc/mime.types"),
)
_TELLS_ENVIRONMENT: Final = lazy_pattern(r"/proc/.*/environ")
_SYSTEM_LIBRARY: Final = lazy_pattern(r"(?:/usr(?:/local)?)?/lib(?:32|64)?/.*\.so[.\d]*|/System/.*|/usr/lib/.*\.dylib")


def installation_folders() -> tuple[str, ...]:
    """Where Python, what is installed with it, and mendflow itself are."""
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    paths = sysconfig.get_paths()
    own = {paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")} | {package, *site.getsitepackages()}
    own.add(os.path.dirname(os.__file__))
    if site.ENABLE_USER_SITE:
        own.add(site.getusersitepackages())
    own |= {place for place in sys.path if os.path.basename(place) in _FOR_PACKAGES}
    own |= {prefix for prefix in (sys.prefix, sys.base_prefix) if prefix not in _SHARED_PREFIXES}
    return tuple(sorted({*own, *map(os.path.realpath, own)}))


class TrustedPaths:
    """`always` are the folders that belong to every call; each call adds those that it makes itself."""

    CREATED_MAX: Final = 10_000

    def __init__(self, work_folder: str) -> None:
        self.installed = installation_folders()
        self._always = (work_folder, os.path.realpath(work_folder), *self.installed, *_OF_THE_SYSTEM)
        self._below = tuple(place + os.sep for place in self._always)
        self._below_installed = tuple(place + os.sep for place in self.installed)
        self._created: set[str] = set()

    def begin(self) -> None:
        """A call begins: it has made nothing yet."""
        if self._created:
            self._created = set()

    def add_created(self, path: str) -> None:
        """From a certain number on it is no longer remembered, and counts as found."""
        if len(self._created) < self.CREATED_MAX:
            self._created.add(path)

    def has(self, path: str) -> bool:
        """Whether an absolute path is one of these places."""
        if path.startswith(self._below) or path in self._always:
            return not path.startswith("/proc/") or _TELLS_ENVIRONMENT.fullmatch(path) is None
        if is_known_place(path):
            return True
        while self._created and path not in self._created:
            above = os.path.dirname(path)
            if above == path:
                return False
            path = above
        return bool(self._created)

    def is_above(self, path: str) -> bool:
        """Whether one of these places, or the current folder, is below a path: then the path is there anyway."""
        prefix = path.rstrip(os.sep) + os.sep
        return any(place.startswith(prefix) for place in (*self._always, os.getcwd(), *self._created))

    def has_library(self, path: str) -> bool:
        return self.has(path) or _SYSTEM_LIBRARY.fullmatch(path) is not None

    def is_installed(self, path: str) -> bool:
        """Whether a file of code is Python's own or installed with it. Frozen modules and texts have no path."""
        return path.startswith(("<frozen ", *self._below_installed))

    def shortened(self, text: str) -> str:
        """The text with these places as if they were in the current folder."""
        if "/" not in text:
            return text
        places = sorted({os.getcwd(), *self._always, *self._created} - set(_OF_THE_SYSTEM), key=len, reverse=True)
        return re.sub(rf"(?<![\w.-])(?:{'|'.join(map(re.escape, places))})(?=[/\s\"':;,)]|$)", ".", text)
