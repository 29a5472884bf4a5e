"""A function is known by its module and by the modules beside it that it needs."""

from pathlib import Path

import pytest

from mendflow.formats.python.sources import ModulesBeside, imports_digest

FILES = {
    "job.py": "import helpers\nfrom tools import cut\nimport json\n\ndef f(): ...\n",
    "helpers.py": "from tools.deep import saw\n",
    "tools/__init__.py": "",
    "tools/cut.py": "from . import deep\n",
    "tools/deep.py": "import helpers\n",
    "other.py": "import job\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tools").mkdir()
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize("name", [name for name in FILES if name not in ("other.py", "job.py")])
def test_a_change_of_what_is_imported_is_seen(folder: Path, name: str) -> None:  # DU-2
    before = imports_digest(ModulesBeside(folder / "job.py", folder).digests)
    (folder / name).write_text(FILES[name] + "# changed\n")
    assert imports_digest(ModulesBeside(folder / "job.py", folder).digests) != before != ""


def test_what_is_not_imported_does_not_matter(folder: Path) -> None:  # DU-2
    before = imports_digest(ModulesBeside(folder / "job.py", folder).digests)
    (folder / "other.py").write_text("changed = 1\n")
    assert imports_digest(ModulesBeside(folder / "job.py", folder).digests) == before


def test_a_module_that_imports_nothing_beside_it_has_no_digest(tmp_path: Path) -> None:  # DU-2
    (tmp_path / "job.py").write_text("import json, os.path\nfrom ..far import x\n")
    assert imports_digest(ModulesBeside(tmp_path / "job.py", tmp_path).digests) == ""
