"""The environment is made by uv, and by pip alone where uv cannot: by stand-ins that write down what they are asked."""

import stat
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

import pytest

from tools import environment

PROJECT_ROOT = str(environment.ROOT)


class Machine:
    """A stand-in for pip, which brings a stand-in for uv: each fails if it is asked for a certain word."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = folder / "bin" / "python"
        self.python.parent.mkdir()
        self.told = folder / "told"

    def program(self, path: Path, *, fails_at: str, brings: Path | None = None) -> Path:
        path.write_text(
            f"""#!{sys.executable}
import shutil, sys
words = " ".join(sys.argv[1:])
open({str(self.told)!r}, "a").write({path.name!r} + " " + words + "\\n")
if {fails_at!r} in words:
    sys.exit("it cannot be reached")
if {brings is not None} and "install.lock" in words:
    shutil.move({str(brings)!r}, {str(self.python.with_name("uv"))!r})
"""
        )
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    def asked(self, *, pip_fails_at: str = "nothing", uv_fails_at: str = "nothing") -> list[tuple[str, str]]:
        """Who was asked to install what, in order."""
        uv = self.program(self.folder / "uv", fails_at=uv_fails_at)
        pip = self.program(self.folder / "pip", fails_at=pip_fails_at, brings=uv)
        environment.install([str(pip)], self.python, ["dev"])
        lines = [line.split(" ", 1) for line in self.told.read_text().splitlines()]
        return [(who, _what(words.split())) for who, words in lines]


def _what(words: Sequence[str]) -> str:
    named = words[-1]
    return Path(named).stem if named.endswith(".lock") else named


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_pip_brings_uv_and_uv_does_the_rest(machine: Machine) -> None:
    assert machine.asked() == [("pip", "install"), ("uv", "dev"), ("uv", PROJECT_ROOT)]


def test_whoever_installs_keeps_to_the_hashes_and_to_wheels(machine: Machine) -> None:
    machine.asked(uv_fails_at="dev.lock")
    locked = [line for line in machine.told.read_text().splitlines() if line.endswith(".lock")]
    assert len(locked) == 3 and all("--require-hashes --only-binary :all: -r " in line for line in locked)


def test_where_uv_cannot_be_had_pip_does_all(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    assert machine.asked(pip_fails_at="install.lock") == [("pip", "install"), ("pip", "dev"), ("pip", PROJECT_ROOT)]
    assert "it cannot be reached" in capsys.readouterr().err


def test_where_uv_gets_nothing_pip_does_all(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    asked = machine.asked(uv_fails_at="dev.lock")
    assert asked == [("pip", "install"), ("uv", "dev"), ("pip", "dev"), ("pip", PROJECT_ROOT)]
    assert "pip is used, as this failed" in capsys.readouterr().err


def test_what_neither_can_install_is_told(machine: Machine) -> None:
    with pytest.raises(environment.NotPrepared, match=r"exit code 1: .*dev\.lock"):
        machine.asked(pip_fails_at="dev.lock", uv_fails_at="dev.lock")


def test_uv_is_told_of_the_index_and_the_certificates_that_pip_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "https://packages.example/simple")
    monkeypatch.setenv("PIP_CERT", "/etc/authority.pem")
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    told = environment._environ_of_uv()
    assert told["UV_DEFAULT_INDEX"] == "https://packages.example/simple"
    assert told["SSL_CERT_FILE"] == "/etc/authority.pem"
    assert told["UV_SYSTEM_CERTS"] == "true", "as pip, it trusts what the system trusts"
    monkeypatch.setenv("SSL_CERT_FILE", "/etc/other.pem")
    assert environment._environ_of_uv()["SSL_CERT_FILE"] == "/etc/other.pem", "what uv is told itself counts more"


class Pythons:
    """A Python that runs us, and perhaps a system with one of the same version."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.system = folder / "system"
        self.system.mkdir()
        own = folder / "own" / "python3"
        monkeypatch.setattr(environment, "SYSTEM_PROGRAMS", self.system)
        monkeypatch.setattr(sys, "executable", str(own))
        self.own = str(own)
        self._patch = monkeypatch

    def compiled_with(self, options: str) -> None:
        self._patch.setattr(sysconfig, "get_config_var", {"CONFIG_ARGS": options}.get)

    def system_has(self, version: str, exit_code: int = 0) -> str:
        program = self.system / f"python{version}"
        program.write_text(f"#!/bin/sh\nexit {exit_code}\n")
        program.chmod(0o755)
        return str(program)


OUR_VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"


@pytest.fixture
def pythons(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pythons:
    return Pythons(tmp_path, monkeypatch)


def test_the_systems_python_is_taken_for_one_without_optimisations(pythons: Pythons) -> None:
    pythons.compiled_with("'--enable-shared'")
    assert environment.quick_python() == pythons.own
    systems = pythons.system_has(OUR_VERSION)
    assert environment.quick_python() == systems


def test_a_python_with_optimisations_is_kept(pythons: Pythons) -> None:
    pythons.compiled_with("'--enable-optimizations' '--with-lto'")
    pythons.system_has(OUR_VERSION)
    assert environment.quick_python() == pythons.own


@pytest.mark.parametrize(("version", "exit_code"), [("3.9", 0), (OUR_VERSION, 1)])
def test_another_version_is_not_taken_nor_one_that_makes_no_environments(
    pythons: Pythons, version: str, exit_code: int
) -> None:
    pythons.compiled_with("")
    pythons.system_has(version, exit_code)
    assert environment.quick_python() == pythons.own


@pytest.fixture
def venv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment that is made and filled by nothing, and answers."""
    made = tmp_path / ".venv"
    made.mkdir()
    monkeypatch.setattr(environment, "VENV", made)
    monkeypatch.setattr(environment, "_answers", lambda python: True)
    monkeypatch.setattr(environment, "_run", lambda command: None)
    monkeypatch.setattr(environment, "_borrows_pip", lambda: True)
    monkeypatch.setattr(environment, "install", lambda *given: None)
    monkeypatch.setattr(sys, "base_prefix", "/opt/compiled")
    return made


def stamped(venv: Path) -> list[str]:
    """Of which Python the environment is, as its stamp says."""
    environment.prepare("dev")
    lines = (venv / "prepared").read_text().splitlines()
    return [line.split(" of ")[1].split(" in ")[0] for line in lines if line.startswith("python ")]


def test_an_environment_is_made_with_the_systems_python_and_says_so(pythons: Pythons, venv: Path) -> None:
    pythons.compiled_with("")
    pythons.system_has(OUR_VERSION)
    assert stamped(venv) == [str(pythons.system.parent)]


def test_an_environment_that_prepares_itself_claims_no_python_but_its_own(
    pythons: Pythons, venv: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pythons.compiled_with("")
    pythons.system_has(OUR_VERSION)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "prefix", str(venv))
        assert stamped(venv) == ["/opt/compiled"]
    asked: list[bool] = []

    def make(python: Path, *, anew: bool) -> list[str]:
        asked.append(anew)
        return []

    monkeypatch.setattr(environment, "_make", make)
    assert stamped(venv) == [str(pythons.system.parent)]
    assert asked == [True], "who calls from outside makes it with the system's"


def test_without_a_pip_to_borrow_the_environment_is_of_the_python_that_calls(
    pythons: Pythons, venv: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pythons.compiled_with("")
    pythons.system_has(OUR_VERSION)
    monkeypatch.setattr(environment, "_borrows_pip", lambda: False)
    assert stamped(venv) == ["/opt/compiled"]
