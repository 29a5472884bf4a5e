"""Files of the user's that have names of Python's own modules are in nobody's way, unless a flow imports them."""

from tests.cli.conftest import Shell

FLOW = """
from mendflow import flow, job

@job
def work(x):
    return x + 1

@flow
def main(x: int = 1):
    return work(x)
"""


def test_files_with_names_of_pythons_own_modules_do_not_reach_the_pilot_nor_its_workers(shell: Shell) -> None:  # DU-2
    for name in ("json", "logging", "queue", "secrets", "select", "statistics", "calendar"):
        shell.write(f"{name}.py", "raise ValueError('a file of the user')\n")
    shell.write("main.py", FLOW)
    shell.write("flow.yaml", "jobs:\n  a: {run: echo hi}\n")
    assert "completed" in shell.ok("run", "flow.yaml", "--quiet")
    assert "result: 2" in shell.ok("run", "main.py", "--quiet")
