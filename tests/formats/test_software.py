"""The software of a job: which forms describe it, and what is said about others."""

import re
from pathlib import Path

import pytest

from mendflow.core.model.flow import JobActivity, Parallel
from mendflow.core.model.software import CONDA, LOCK, PROJECT, REQUIREMENTS, Software
from mendflow.formats.software import BadSoftware, environment_of, modules_of
from tests.formats.conftest import Complaints, Reader


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "requirements.txt").write_text("-r more/base.txt\nnumpy==2.1\n")
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "base.txt").write_text("--constraint pins.txt\nrich\n")
    (tmp_path / "more" / "pins.txt").write_text("rich==13.0\n")
    (tmp_path / "tools.yml").write_text("dependencies: [samtools]\n")
    (tmp_path / "uv.lock").write_text("")
    (tmp_path / "pyproject.toml").write_text("")
    return tmp_path


def test_a_file_tells_by_its_name_what_it_describes(folder: Path) -> None:  # DU-5
    included = {"more/base.txt": "more/base.txt", "more/pins.txt": "more/pins.txt"}
    assert environment_of("requirements.txt", folder).sources == {REQUIREMENTS: "requirements.txt", **included}
    assert environment_of("uv.lock", folder) == Software(kind="uv", sources={PROJECT: PROJECT, LOCK: LOCK})
    assert environment_of("pyproject.toml", folder) == environment_of("uv.lock", folder)
    assert environment_of("tools.yml", folder) == Software(kind="conda", sources={CONDA: "tools.yml"})
    packages = Software(packages=("numpy==2.1", "pandas[excel]>=2,<3"))
    assert environment_of(["numpy==2.1", "pandas[excel]>=2,<3"], folder) == packages
    whole = {"requirements": "more/base.txt", "python": "3.12"}
    base = {REQUIREMENTS: "more/base.txt", "pins.txt": "more/pins.txt"}
    assert environment_of(whole, folder) == Software(sources=base, python="3.12")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("requirments.txt", "there is no file `requirments.txt`"),
        ("../requirements.txt", "leads out of the flow's folder"),
        ("/etc/requirements.txt", "leads out of the flow's folder"),
        ("tools", "does not tell what it is by its name"),
        ([], "packages are a list of texts"),
        (["-r x.txt"], "is not a package with its version"),
        (["numpy\n--no-deps"], "is not a package with its version"),
        ({"LC_ALL": "C"}, "environment variables are given under `env:`"),
        ({"conda": "tools.yml", "packages": ["a"]}, "needs one of requirements, packages, uv and conda"),
        ({"conda": "tools.yml", "python": "3.12"}, "write it into the file"),
        ({"packages": ["a"], "python": "latest"}, "a version such as 3.12"),
        (7, "not 7"),
    ],
)
def test_what_describes_no_environment_is_answered(folder: Path, given: object, told: str) -> None:  # DU-5
    with pytest.raises(BadSoftware, match=re.escape(told)):
        environment_of(given, folder)


@pytest.mark.parametrize("line", ["-e .", "./local.whl", "file:///tmp/x.whl", "-r ../above.txt"])
def test_what_other_machines_do_not_have_is_refused(folder: Path, line: str) -> None:  # DU-5
    (folder / "requirements.txt").write_text(f"rich\n{line}\n")
    with pytest.raises(BadSoftware, match=r"requirements.txt:2: "):
        environment_of("requirements.txt", folder)


def test_names_of_modules_are_words_of_a_command(folder: Path) -> None:  # DU-5
    assert modules_of("gcc/12.2") == ("gcc/12.2",) and modules_of(["a", "b/1"]) == ("a", "b/1")
    for bad in ("a; rm -rf x", "-h", "$(x)", ""):
        with pytest.raises(BadSoftware, match="cannot be the name of a module"):
            modules_of([bad])


def test_a_flow_gives_all_its_jobs_an_environment_and_one_job_another(read: Reader) -> None:  # DU-5
    head = "name: f\ndefaults: {environment: [rich], modules: gcc/12}\n"
    body = read(f"{head}jobs:\n  a: {{run: a}}\n  b: {{run: b, environment: [attrs]}}\n").body
    assert isinstance(body, Parallel)
    a, b = body.branches
    assert isinstance(a, JobActivity) and isinstance(b, JobActivity)
    assert a.software == Software(packages=("rich",), modules=("gcc/12",))
    assert b.software == Software(packages=("attrs",), modules=("gcc/12",))


def test_a_bad_environment_is_told_where_it_stands(complaints: Complaints) -> None:  # DU-5
    [told] = complaints("name: f\njobs:\n  a:\n    run: a\n    environment: {A: b}\n")
    assert told.startswith("5:18: ") and "under `env:`" in told


def test_packages_under_a_word_of_other_tools_are_answered_with_ours(folder: Path) -> None:  # DU-5
    with pytest.raises(BadSoftware) as refused:
        environment_of({"pip": ["numpy"]}, folder)
    assert refused.value.suggestion == "packages"
