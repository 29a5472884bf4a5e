"""Start-up is mostly loading, and grows by an import here and there. Seconds depend on the machine; what is loaded does
not, so that is counted. A bound that is too low by now is raised where the new module is needed at once; mostly it is
not, and `mendflow.lazy` names it until then."""

import ast
import asyncio
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from mendflow.stores.urls import store_at
from tests.patience import PATIENCE_S

FOLDER_MODULES_MAX = 740
PILOT_MODULES_MAX = 152
SLOT_MODULES_MAX = 94
ON_FIRST_USE = frozenset(
    {
        *("aiohttp", "cel_expr_python", "ctypes", "html", "importlib.resources", "litestar", "lxml", "pydantic", "re2"),
        *("statistics", "uvicorn", "uvloop", "yaml", "zipfile"),
        *("mendflow.batch.condor", "mendflow.batch.gridengine", "mendflow.batch.psij", "mendflow.formats.bpel"),
        *("mendflow.core.results.script_dependencies", "mendflow.pilot.launch", "mendflow.server.pilot_api"),
        *("mendflow.services.api.archive.service", "mendflow.services.api.reasons"),
        *("mendflow.services.api.rule_service", "mendflow.services.recovery.rules.preview", "mendflow.server.mail"),
        *("mendflow.services.learning.proposal_maker", "mendflow.services.learning.recount"),
    }
)
"""What `mendflow cases` does without."""


@pytest.fixture(scope="module")
def loaded_by_cases(tmp_path_factory: pytest.TempPathFactory) -> frozenset[str]:
    folder = tmp_path_factory.mktemp("folder")
    (folder / ".mendflow").mkdir()
    asyncio.run(make_store(folder / ".mendflow"))
    return loaded_after("from mendflow.cli.main import main\ntry: main(['cases'])\nexcept SystemExit: pass", folder)


async def make_store(folder: Path) -> None:
    store = store_at("", folder).store
    await store.open()
    await store.close()


def loaded_after(script: str, folder: Path) -> frozenset[str]:
    program = f"import sys\n{script}\nprint('loaded:', *sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S, check=True
    )
    return frozenset(done.stdout.rpartition("loaded:")[2].split())


def ours(loaded: frozenset[str]) -> set[str]:
    return {name for name in loaded if name.partition(".")[0] == "mendflow"}


def test_a_command_in_a_data_folder_loads_only_what_a_server_needs(loaded_by_cases: frozenset[str]) -> None:
    assert "mendflow.wiring" in loaded_by_cases
    assert not ON_FIRST_USE & loaded_by_cases
    assert len(ours(loaded_by_cases)) <= FOLDER_MODULES_MAX


@pytest.mark.full
def test_no_module_that_it_loads_compiles_a_pattern_while_it_loads(loaded_by_cases: frozenset[str]) -> None:
    compiling = [name for name in sorted(ours(loaded_by_cases)) if compiles_at_once(name)]
    assert not compiling, "use lazy_pattern in these"


def compiles_at_once(module: str) -> bool:
    spec = importlib.util.find_spec(module)
    assert spec is not None and spec.origin is not None
    statements = ast.parse(Path(spec.origin).read_text()).body
    return any(
        isinstance(node, ast.Call) and ast.unparse(node.func) == "re.compile"
        for statement in statements
        if isinstance(statement, ast.Assign | ast.AnnAssign)
        for node in ast.walk(statement)
    )


def test_a_server_loads_no_client_of_http_before_it_asks_somebody(tmp_path: Path) -> None:
    loaded = loaded_after("import mendflow.cli.serve, mendflow.server.app, mendflow.server.runner", tmp_path)
    assert "litestar" in loaded
    assert not {"aiohttp", "cryptography", "fsspec", "jwt", "psycopg", "re2"} & loaded


def test_a_pilot_loads_little_of_the_product(tmp_path: Path) -> None:
    loaded = loaded_after("import mendflow.pilot.main", tmp_path)
    assert not {"aiohttp", "fsspec", "lxml", "yaml", "mendflow.formats", "mendflow.services"} & loaded
    assert len(ours(loaded)) <= PILOT_MODULES_MAX


def test_a_slot_loads_nothing_that_speaks_with_others(tmp_path: Path) -> None:
    """A pilot starts one for each job that it runs at a time."""
    loaded = loaded_after("import mendflow.pilot.slot.process", tmp_path)
    assert not {"asyncio", "concurrent.futures", "http", "logging", "ssl", "mendflow.pilot.agent"} & loaded
    assert len(ours(loaded)) <= SLOT_MODULES_MAX
