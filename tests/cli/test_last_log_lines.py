"""The end of what a failed job printed says where in one's own code it failed, and equal failures are told once."""

import pytest

from mendflow.cli.last_log_lines import end_of_output
from tests.cli.conftest import Shell

LIBRARY = [
    line
    for place in range(6)
    for line in (f'  File "/usr/lib/python3.11/site-packages/tables/{place}.py", line 9, in read', "    inner()")
]
DEEP = [
    "begun",
    "Traceback (most recent call last):",
    '  File "/home/ann/flow/outer.py", line 1, in <module>',
    "    align()",
    '  File "/home/ann/flow/align.py", line 12, in align',
    "    read(table)",
    *LIBRARY,
    "ValueError: no such column",
]
ALIKE = """
name: alike
jobs:
  align:
    for-each: {n: [1, 2, 3, 4, 5, 6, 7]}
    run: echo "it is broken" >&2; exit 3
  other: {run: exit 4}
"""


def test_the_innermost_line_of_ones_own_is_kept_of_a_traceback_that_ends_deep_in_libraries() -> None:
    assert end_of_output("\n".join(DEEP), 8) == [
        '  File "/home/ann/flow/align.py", line 12, in align',
        "    read(table)",
        "  ...",
        *LIBRARY[-4:],
        "ValueError: no such column",
    ]


def test_what_fits_and_what_is_no_traceback_is_shown_as_it_ends() -> None:
    assert end_of_output("\n".join(DEEP), 100) == DEEP
    assert end_of_output("a\nb\nc", 2) == ["b", "c"]
    assert end_of_output("", 8) == []


@pytest.mark.full
def test_equal_failures_are_told_once_with_how_many_there_are(shell: Shell) -> None:
    shell.write("alike.yaml", ALIKE)
    told = shell("run", "alike.yaml", "--quiet").stdout
    assert told.count("    | it is broken") == 1
    assert "  align[0] (1) and 6 more: " in told and "  other: it ended with exit code 4" in told
