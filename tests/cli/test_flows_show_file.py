"""`mendflow flows show FLOW --file`: the file of a flow as it was sent but for passwords, from whatever command."""

from mendflow.core.model.flow_files import FLOW_TEXT_MAX
from tests.cli.conftest import Shell

TEXT = "# counts lines\ninputs: {}\njobs: {a: {run: 'true'}}  # nothing yet\n"


def test_a_flow_is_shown_as_the_file_that_it_was_deployed_from(shell: Shell) -> None:
    shell.write("count.yaml", TEXT)
    shell.ok("flows", "deploy", "count.yaml")
    assert shell.ok("flows", "show", "count", "--file") == TEXT
    shell.write("count.yaml", f"# again\n{TEXT}")
    shell.ok("flows", "deploy", "count.yaml")
    assert shell.ok("flows", "show", "count", "--file") == f"# again\n{TEXT}"
    assert shell.json("flows", "show", "count", "--file")["file"] == "count.yaml"


def test_a_flow_that_was_run_and_one_in_python_are_shown_too(shell: Shell) -> None:
    shell.write("once.yaml", TEXT)
    shell.ok("run", "once.yaml")
    assert shell.ok("flows", "show", "once", "--file") == TEXT
    code = "# plain\nfrom mendflow import flow, job\n\n\n@job\ndef one() -> int:\n    return 1\n\n\n"
    code += "@flow\ndef made() -> int:\n    return one()\n"
    shell.write("made.py", code)
    shell.ok("flows", "deploy", "made.py")
    assert shell.ok("flows", "show", "made", "--file") == code


def test_a_file_that_is_too_long_is_named_with_the_reason(shell: Shell) -> None:
    shell.write("long.yaml", TEXT + "#" * FLOW_TEXT_MAX)
    shell.ok("flows", "deploy", "long.yaml")
    found = shell("flows", "show", "long", "--file")
    assert found.returncode != 0 and "long.yaml: the file is longer than 1,048,576 characters" in found.stderr


def test_a_file_is_as_long_as_it_has_characters(shell: Shell) -> None:
    text = TEXT + "# " + "ü" * (FLOW_TEXT_MAX - len(TEXT) - 2)
    shell.write("full.yaml", text)
    shell.ok("flows", "deploy", "full.yaml")
    assert shell.json("flows", "show", "full", "--file")["text"] == text


def test_a_file_with_an_odd_name_is_kept_under_a_plain_one(shell: Shell) -> None:  # SE-1
    shell.write("odd\nname.yaml", f"name: odd\n{TEXT}")
    shell.ok("flows", "deploy", "odd\nname.yaml")
    assert shell.json("flows", "show", "odd", "--file")["file"] == "odd_name.yaml"
