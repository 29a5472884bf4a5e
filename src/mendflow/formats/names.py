"""The syntax of names, the same in every format."""

from typing import Final

from mendflow.lazy import lazy_pattern

NAME: Final = lazy_pattern(r"[A-Za-z_](?:[A-Za-z0-9_-]*[A-Za-z0-9_])?")
"""Flows, jobs, inputs and files: letters, digits, `_` and `-`. Generated names contain a dot, so that they never
collide with these."""

NAME_CHARS_MAX: Final = 100
VARIABLE: Final = lazy_pattern(r"[A-Za-z_][A-Za-z0-9_]*")
