"""Functions of one warm worker and the modules beside them: each gets those of its own folder, as they are now."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from mendflow.core.model.ids import ItemId
from mendflow.core.model.jobs import MARK_CHARS, FunctionRef, JobSpec, Outcome
from tests.pilot.conftest import Pilot, Server

Hire = Callable[..., Pilot]
ONE_LOOP = pytest.mark.asyncio(loop_scope="module")


async def call(server: Server, folder: Path, module: str, *named: str) -> Outcome:
    """Call `f` of a module as if it had just been deployed with these modules beside it."""
    code = server.keep((folder / f"{module}.py").read_bytes())
    digests = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in named}
    function = FunctionRef(
        module=module,
        name="f",
        code=code,
        folder=str(folder),
        imports=hashlib.sha256(repr(digests).encode()).hexdigest() if digests else "",
        modules=tuple(f"{digests[name][:MARK_CHARS]} {name}" for name in sorted(digests)),
    )
    outcome = await server.outcome(await server.submit(JobSpec(item=ItemId("i"), function=function)))
    assert outcome.ok, outcome.fault
    return outcome


def write(folder: Path, **sources: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name, source in sources.items():
        (folder / f"{name}.py").write_text(source)
    return folder


@ONE_LOOP
async def test_a_worker_that_has_loaded_an_older_module_loads_it_again(staffed: Server, tmp_path: Path) -> None:
    """Also for a module that it has not loaded itself."""
    use = "import helper\ndef f(): return helper.value\n"
    folder = write(tmp_path / "flow", one=use, two=use, helper="value = 1\n")
    assert (await call(staffed, folder, "one", "helper.py")).outputs == 1
    write(folder, helper="value = 2\n")
    for module in ("two", "one"):
        outcome = await call(staffed, folder, module, "helper.py")
        assert (outcome.outputs, outcome.code_mismatch, outcome.undeclared_reads) == (2, "", "")


@ONE_LOOP
async def test_modules_of_the_same_name_in_two_folders_do_not_meet(staffed: Server, tmp_path: Path) -> None:
    folders = [
        write(
            tmp_path / f"flow{n}",
            **{f"use{n}": "def f():\n import helper\n return helper.value\n"},
            helper=f"value = {n}",
        )
        for n in (1, 2)
    ]
    for _ in range(2):
        for number, folder in enumerate(folders, 1):
            outcome = await call(staffed, folder, f"use{number}", "helper.py")
            assert (outcome.outputs, outcome.code_mismatch) == (number, "")


@ONE_LOOP
async def test_only_the_call_that_loads_a_module_by_a_text_is_said_to(staffed: Server, tmp_path: Path) -> None:
    dynamic = "import importlib\ndef f(): return importlib.import_module('plug' + 'in').value\n"
    folder = write(tmp_path / "flow", dynamic=dynamic, plain="def f(): return 0\n")
    for value in (1, 2):
        write(folder, plugin=f"value = {value}\n")
        outcome = await call(staffed, folder, "dynamic")
        assert outcome.outputs == value and "it loaded plugin.py" in outcome.undeclared_reads
    assert (await call(staffed, folder, "plain")).undeclared_reads == ""


@ONE_LOOP
async def test_a_module_that_loads_another_by_a_text_when_it_is_imported_is_said_to_each_time(
    staffed: Server, tmp_path: Path
) -> None:
    use = "import importlib\nplugin = importlib.import_module('plugin')\ndef f(): return plugin.value\n"
    folder = write(tmp_path / "flow", one=use, two=use, plugin="value = 1\n")
    for module in ("one", "two", "one"):
        assert "it loaded plugin.py" in (await call(staffed, folder, module)).undeclared_reads


async def test_what_a_function_reads_in_its_own_folder_is_no_file_beside_the_flow(
    server: Server, hire: Hire, tmp_path: Path
) -> None:
    """Although the pilot works below the flow's folder."""
    hire(work=tmp_path / "flow" / "work")
    source = "import csv\ndef f():\n open('a', 'w').write('1')\n return open('a').read()\n"
    outcome = await call(server, write(tmp_path / "flow", plain=source), "plain")
    assert (outcome.outputs, outcome.undeclared_reads) == ("1", "")


@pytest.mark.full
async def test_code_that_was_damaged_in_the_pilots_folder_is_fetched_again(
    server: Server, hire: Hire, tmp_path: Path
) -> None:
    hire()
    source = "def f(): return 1\ndef g(): return 2\n"
    assert (await server.outcome(await server.call(source, "f"))).outputs == 1
    [staged] = (tmp_path / "work" / "code").rglob("given.py")
    staged.write_text("def f(): return 8\ndef g(): return 9\n")
    assert (await server.outcome(await server.call(source, "g"))).outputs == 2
