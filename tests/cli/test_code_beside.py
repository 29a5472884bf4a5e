"""Python jobs and the files beside their flow: what ran is what the result is found by, or it is not used again."""

import pytest

from tests.cli.conftest import Shell

FLOW = """
from mendflow import flow, job


@job
def first(n):
    {first}

@job
def second(n):
    {second}
    return [n, value]

@flow
def beside(n: int = 1):
    return second(first(n))
"""


def write(shell: Shell, second: str, first: str = "return n") -> None:
    shell.write("beside.py", FLOW.replace("{first}", first).replace("{second}", second))


def run(shell: Shell, *words: str) -> str:
    return shell.ok("run", "beside.py", "--quiet", *words)


@pytest.mark.full
def test_a_module_that_is_edited_while_a_case_runs_leaves_no_result_under_its_old_content(shell: Shell) -> None:  # DU-2
    edit = f"open({str(shell.folder / 'helper.py')!r}, 'w').write('value = 2'); return n"
    write(shell, "from helper import value", edit)
    shell.write("helper.py", "value = 1\n")
    assert "[1,2]" in run(shell, "--no-cache").replace(" ", "")
    assert "its result is not used again: helper.py beside the flow was changed" in shell.ok("why", "last:second")
    assert "was changed after the flow was deployed" in shell("cache", "show", "last:second").stderr
    shell.write("helper.py", "value = 1\n")
    assert "[1,1]" in run(shell).replace(" ", "")
    assert "is not used: helper.py beside the flow was changed" in shell.ok("why", "last:second")


@pytest.mark.full
def test_the_summary_says_which_results_were_made_by_code_that_was_changed_meanwhile(shell: Shell) -> None:  # DU-2
    edit = f"open({str(shell.folder / 'helper.py')!r}, 'w').write('value = 2'); return n"
    write(shell, "from helper import value", edit)
    shell.write("helper.py", "value = 1\n")
    said = "made by other code than the case began with: second (helper.py changed meanwhile); "
    assert f"{said}mendflow run beside.py" in run(shell, "--no-cache")
    assert f"{said}mendflow rerun beside-" in shell.ok("watch", "last")
    assert "made by other code" not in run(shell)


def test_a_flow_that_is_edited_while_its_case_runs_goes_on_as_deployed_with_the_modules_beside_it(
    shell: Shell,
) -> None:  # DU-2
    edit = (
        f"open({str(shell.folder / 'helper.py')!r}, 'w').write('value = 2');"
        f" open({str(shell.folder / 'beside.py')!r}, 'a').write('n = 1 / 0'); return n"
    )
    write(shell, "from helper import value", edit)
    shell.write("helper.py", "value = 1\n")
    told = run(shell, "--no-cache")
    assert "[1,2]" in told.replace(" ", "")
    assert "made by other code than the case began with: second (helper.py changed meanwhile)" in told


@pytest.mark.full
def test_an_edit_of_a_module_within_one_second_is_seen_by_the_next_run(shell: Shell) -> None:
    """The bytecode of the first would still look up to date."""
    write(shell, "from helper import value")
    for value in (1, 2, 3):
        shell.write("helper.py", f"value = {value}\n")
        assert f"[1,{value}]" in run(shell).replace(" ", "")


@pytest.mark.full
def test_a_module_that_is_loaded_by_its_name_in_a_text_is_not_in_the_key_and_so_not_used_by_itself(
    shell: Shell,
) -> None:  # DU-2
    write(shell, "import importlib; value = importlib.import_module('plug' + 'in').value")
    for value in (1, 2):
        shell.write("plugin.py", f"value = {value}\n")
        assert f"[1,{value}]" in run(shell).replace(" ", "")
    why = shell.ok("why", "last:second")
    assert "the result of case beside-" in why and "it loaded plugin.py, which the flow does not import" in why
    assert "its result is not used again without --cached: it loaded plugin.py" in why
    assert "2 cached" in run(shell, "--cached")
    assert "although it loaded plugin.py" in shell.ok("why", "last:second")


@pytest.mark.full
def test_a_file_beside_the_flow_that_a_function_reads_is_not_in_the_key_and_so_not_used_by_itself(
    shell: Shell,
) -> None:  # DU-2
    write(shell, f"value = int(open({str(shell.folder / 'table.txt')!r}).read())")
    for value in (1, 2):
        shell.write("table.txt", f"{value}\n")
        assert f"[1,{value}]" in run(shell).replace(" ", "")
    assert "it read table.txt beside the flow, which is not among its inputs" in shell.ok("why", "last:second")
    assert "it read table.txt beside the flow" in shell.ok("cache", "show", "last:second")


def test_modules_that_the_flow_imports_by_name_are_in_the_key(shell: Shell) -> None:  # DU-2
    write(shell, "from helper import value")
    shell.write("helper.py", "value = 1\n")
    run(shell)
    assert "2 cached" in run(shell)


@pytest.mark.full
def test_what_a_function_reads_elsewhere_is_not_in_the_key_and_so_not_used_by_itself(
    shell: Shell, tmp_path_factory: pytest.TempPathFactory
) -> None:  # DU-2
    data = tmp_path_factory.mktemp("elsewhere") / "data.txt"
    for second in (f"value = int(open({str(data)!r}).read())", f"value = int(os.popen('cat {data}').read())"):
        write(shell, f"import os; {second}")
        for value in (1, 2):
            data.write_text(f"{value}\n")
            assert f"[1,{value}]" in run(shell).replace(" ", "")
        assert "its result is not used again without --cached: it " in shell.ok("why", "last:second")
        assert f"{data}, which is none of its inputs" in shell.ok("cache", "show", "last:second")
    data.write_text("3\n")
    assert "2 cached" in run(shell, "--cached")
    assert f"although it names {data}" in shell.ok("why", "last:second")


@pytest.mark.full
def test_a_variable_that_a_function_reads_is_not_in_the_key_and_so_not_used_by_itself(shell: Shell) -> None:  # DU-2
    write(shell, "import os; value = int(os.environ.get('MODE', '0'))")
    for value in (1, 2):
        assert f"[1,{value}]" in shell.ok("run", "beside.py", "--quiet", MODE=str(value)).replace(" ", "")
    assert "it uses $MODE, which it does not set itself" in shell.ok("why", "last:second")


def test_an_author_vouches_for_what_a_function_reads_elsewhere(shell: Shell) -> None:  # DU-2
    write(shell, "import os; value = os.environ.get('HOME')")
    text = (shell.folder / "beside.py").read_text()
    shell.write("beside.py", text.replace("@job\ndef second", "@job(cache=True)\ndef second"))
    run(shell)
    assert "2 cached" in run(shell)
