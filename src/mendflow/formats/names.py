"""The syntax of names, the same in every format."""

import re
from typing import Final

NAME: Final = re.compile(r"[A-Za-z_](?:[A-Za-z0-9_-]*[A-Za-z0-9_])?")
"""Flows, jobs, inputs and files: letters, digits, `_` and `-`. Generated names contain a dot, so that they never
collide with these."""

NAME_CHARS_MAX: Final = 100
VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
