"""Secrets that jobs use by name: tokens, passwords, keys. A flow, a journal and a job's document have names only; the
value is given to the pilot together with the job, and nobody else sees it."""

from typing import Final, NamedTuple

import msgspec

from mendflow.core.model.ids import Instant
from mendflow.core.model.principals import DEFAULT_PROJECT

VALUE_CHARS_MIN: Final = 4
"""A shorter value would be masked in texts that have nothing to do with it."""
MASKED_CHARS_MIN: Final = 8
"""A shorter value is masked in the log of a job that has it, and nowhere else: it may be in results by chance."""
VALUE_BYTES_MAX: Final = 64 << 10
NAME_CHARS_MAX: Final = 100


class SecretUse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A job gets the secret as an environment variable, or as a file of this path in its folder."""

    name: str
    variable: str = ""
    path: str = ""

    @property
    def place(self) -> str:
        return self.variable or self.path


class SecretView(msgspec.Struct, frozen=True, kw_only=True):
    """A secret as people see it: never its value. `source` says where it comes from, unless it is kept in the store.
    `used_by` are the deployed flows that name it. `problem` says why it cannot be given to jobs."""

    name: str
    project: str = DEFAULT_PROJECT
    set_by: str = ""
    set_at: Instant = 0
    source: str = ""
    used_by: list[str] = []
    problem: str = ""


class SecretValue(msgspec.Struct, frozen=True):
    """The value that an administrator sets."""

    value: str

    def __repr__(self) -> str:
        return "SecretValue(***)"


class FoundSecret(NamedTuple):
    """A secret that the machine of a server has itself, and where."""

    value: str
    source: str


def secret_name_flaw(name: str) -> str:
    """What is wrong with the name of a secret; empty if nothing is."""
    usable = name.isascii() and all(char.isalnum() or char in "_-." for char in name) and name[:1].isalnum()
    if not usable or len(name) > NAME_CHARS_MAX:
        return f"`{name:.100}` is no name of a secret: use letters, digits, _, - and ."
    return ""


def secret_value_flaw(value: str) -> str:
    """What is wrong with a value; the value itself is not said."""
    if len(value.strip()) < VALUE_CHARS_MIN:
        return f"the value has less than {VALUE_CHARS_MIN} characters, too few to be masked in logs"
    if len(value.encode()) > VALUE_BYTES_MAX:
        return f"the value has more than {VALUE_BYTES_MAX >> 10} KB; give a large one as a file of the job's inputs"
    return "the value holds a NUL character" if "\0" in value else ""


def variable_of(name: str) -> str:
    """The environment variable of a secret that is named without one: `api-token` is API_TOKEN."""
    text = "".join(char if char.isalnum() else "_" for char in name).upper()
    return f"_{text}" if text[:1].isdigit() else text


def secret_use_flaw(use: SecretUse) -> str:
    if flaw := secret_name_flaw(use.name):
        return flaw
    if use.path:
        parts = use.path.split("/")
        inside = not use.path.startswith("/") and all(part not in ("", ".", "..") for part in parts)
        return "" if inside and "\0" not in use.path else f"`{use.path:.100}` is no path in the job's folder"
    usable = use.variable.isascii() and all(char.isalnum() or char == "_" for char in use.variable)
    if not usable or not use.variable or use.variable[0].isdigit():
        return f"`{use.variable:.100}` is no name of an environment variable; a file is written `{{file: {use.name}}}`"
    if use.variable.startswith("MENDFLOW_"):
        return f"`{use.variable}` is a variable of mendflow itself; choose another"
    return ""
