"""Which shells a job may choose."""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendflow.core.model.shells import pipes_fail, shell_flaw, template_words, words_of


@pytest.mark.parametrize(
    "shell",
    [
        "",
        "bash",
        "sh",
        "python",
        "Rscript {0}",
        "bash -e {0}",
        "sh {0}",
        "/opt/x/bin/julia --startup-file=no {0}",
        "awk -f{0}",
    ],
)
def test_a_name_or_a_template_with_a_place_for_the_script_is_a_shell(shell: str) -> None:
    assert shell_flaw(shell) == ""


@pytest.mark.parametrize(
    ("shell", "told"),
    [
        ("zsh", "write `zsh {0}`"),
        ("bash -e", "write `bash -e {0}`"),
        ("{0}", "write"),
        ("${{ inputs.shell }} {0}", "no expression"),
        ("perl 'x {0}", "not closed"),
        ("   ", "bash, sh, python"),
        ("a\0b {0}", "written out"),
    ],
)
def test_anything_else_is_refused_with_what_to_write(shell: str, told: str) -> None:
    assert told in shell_flaw(shell)


def test_a_template_is_taken_as_it_is_written() -> None:
    assert template_words("awk -v 'a b=1' -f{0} --", "/a/my script") == [
        "awk",
        "-v",
        "a b=1",
        "-f/a/my script",
        "--",
    ]
    assert [pipes_fail(each) for each in ("", "bash", "bash -o pipefail {0}", "sh", "bash -e {0}")] == [1, 1, 1, 0, 0]


@given(st.text(st.sampled_from("ab {0}\\\"'$`\n\t-=\u00e9"), max_size=12))
def test_words_are_those_of_a_shell(text: str) -> None:
    try:
        wanted: list[str] | None = shlex.split(text)
    except ValueError:
        wanted = None
    assert words_of(text) == wanted or "\\" in text  # where shells, and shlex, differ among themselves
    quoted = shlex.quote(text)
    assert words_of(f"a {quoted}") == ["a", text]
