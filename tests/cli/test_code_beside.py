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
@pytest.mark.parametrize("when", ["before", "in the same moment"])
def test_a_module_that_is_edited_while_a_case_runs_is_as_it_was_for_the_case(shell: Shell, when: str) -> None:  # DU-2
    edit = f"open({str(shell.folder / 'helper.py')!r}, 'w').write('value = 2')"
    if when == "before":
        write(shell, "from helper import value", f"{edit}; return n")
    else:
        write(shell, f"{edit}; from helper import value")
    shell.write("helper.py", "value = 1\n")
    told = run(shell, "--no-cache")
    assert "[1,1]" in told.replace(" ", "") and "made by other code" not in told
    assert "was changed" not in shell.ok("why", "last:second")
    write(shell, "from helper import value")
    assert "[1,2]" in run(shell).replace(" ", ""), "the next case has the edited one"


@pytest.mark.full
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
    assert "[1,1]" in told.replace(" ", ""), "the modules are those that it was deployed with"
    assert "made by other code" not in told
    shell.write("beside.py", (shell.folder / "beside.py").read_text().replace("n = 1 / 0", ""))
    (shell.folder / "helper.py").write_text("value = 1\n")
    assert "cached" in run(shell), "so its results stand for those modules"


@pytest.mark.full
def test_a_module_that_is_gone_while_a_case_runs_is_there_for_the_case(shell: Shell) -> None:  # DU-2
    (shell.folder / "tools").mkdir()
    shell.write("tools/__init__.py", "base = 1\n")
    shell.write("tools/deep.py", "from . import base\nvalue = base + 1\n")
    gone = f"import shutil; shutil.rmtree({str(shell.folder / 'tools')!r}); return n"
    write(shell, "from tools.deep import value", gone)
    assert "[1,2]" in run(shell, "--no-cache").replace(" ", "")


@pytest.mark.full
def test_an_edit_of_one_function_does_not_make_the_others_run_again(shell: Shell) -> None:  # DU-2
    write(shell, "value = 1")
    run(shell)
    write(shell, "value = 2")
    told = run(shell)
    assert "1 done, 1 cached" in told and "ran again: second: beside.py changed" in told


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


@pytest.mark.full
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
