"""The names of operating systems and processors, normalized."""

from typing import Final

SYSTEMS: Final = ("linux", "darwin", "freebsd", "openbsd", "netbsd", "sunos", "aix")
MACHINES: Final = ("x86_64", "x86_32", "arm64", "arm", "powerpc", "sparc", "mips", "ia64", "parisc", "riscv64", "s390x")
FAMILIES: Final = {"x86": frozenset({"x86_64", "x86_32"}), "arm": frozenset({"arm", "arm64"})}
"""A family is requested by its own name, and any of its members matches."""

_BEGINNINGS: Final = (
    ("amd64", "x86_64"),
    ("x86_64", "x86_64"),
    ("x86-64", "x86_64"),
    ("i86pc", "x86_64"),
    ("aarch64", "arm64"),
    ("arm64", "arm64"),
    ("arm", "arm"),
    ("ppc", "powerpc"),
    ("powerpc", "powerpc"),
    ("sparc", "sparc"),
    ("sun4", "sparc"),
    ("mips", "mips"),
    ("ia64", "ia64"),
    ("parisc", "parisc"),
    ("hppa", "parisc"),
    ("riscv64", "riscv64"),
    ("s390x", "s390x"),
)


def machine_of(name: str) -> str:
    """The normalized name for `uname -m`; the lower-case text itself if it is unknown."""
    name = name.lower()
    if len(name) == 4 and name[0] == "i" and name.endswith("86"):
        return "x86_32"
    return next((word for beginning, word in _BEGINNINGS if name.startswith(beginning)), name)


def suits(has: str, wanted: str) -> bool:
    """Whether a machine is the wanted one, or of the wanted family."""
    return has == wanted or has in FAMILIES.get(wanted, ())
