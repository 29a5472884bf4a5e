"""The project's own virtual environment, made with nothing but Python and pip.

What is installed is exactly what a lock file names, checked by hash, from wheels only. uv installs it in seconds, and
is itself locked; where it cannot, pip does the same in a minute or two. A stamp in the environment says which locks it
was made from, so that a second call costs nothing.

The environment's Python is of the version that calls, but not always that one. A version manager compiles Python
without optimisations unless it is told otherwise, and everything takes a third longer with it than with the system's.
So the system's is taken in its place, if there is one of the same version."""

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
LOCKS = ROOT / "requirements"
SYSTEM_PROGRAMS = Path("/usr/bin")
PYTHON_MIN = (3, 11)


class NotPrepared(Exception):
    """The environment could not be made; the sentence says why."""


def prepare(*lock_names: str) -> Path:
    """Make or update `.venv` with the named locks and the project itself, and give its folder of programs."""
    if sys.version_info < PYTHON_MIN:
        raise NotPrepared(
            f"Python {PYTHON_MIN[0]}.{PYTHON_MIN[1]} or newer is needed; this is {sys.version.split()[0]}."
        )
    programs = VENV / ("Scripts" if os.name == "nt" else "bin")
    wanted = _stamp(lock_names)
    stamp = VENV / "prepared"
    python = programs / ("python.exe" if os.name == "nt" else "python")
    found = set(stamp.read_text().splitlines()) if stamp.is_file() and _answers(python) else set()
    if wanted <= found:
        return programs
    pip = _make(python, anew=_python_line() not in found and not _is_own())
    stamp.unlink(missing_ok=True)
    install(pip, python, lock_names)
    still_true = found & _stamp([lock.stem for lock in LOCKS.glob("*.lock")])
    stamp.write_text("\n".join(sorted(wanted | still_true)) + "\n")
    return programs


def _stamp(lock_names: Sequence[str]) -> set[str]:
    """One line per thing that the environment depends on. The folder counts: an environment cannot be moved."""
    files = [LOCKS / f"{name}.lock" for name in lock_names] + [ROOT / "pyproject.toml"]
    lines = {f"{file.name} {hashlib.sha256(file.read_bytes()).hexdigest()}" for file in files}
    return lines | {_python_line()}


def _python_line() -> str:
    base = sys.base_prefix if _chosen_python() == sys.executable else SYSTEM_PROGRAMS.parent
    return f"python {sys.version_info[0]}.{sys.version_info[1]} of {base} in {ROOT}"


def _is_own() -> bool:
    """Whether this program is run by the environment's Python: then that is kept, whichever it is."""
    return Path(sys.prefix).resolve() == VENV.resolve()


def _borrows_pip() -> bool:
    return importlib.util.find_spec("pip") is not None


def _chosen_python() -> str:
    """The Python that the environment has, or is made with. Only the one that calls is known to bring a pip along."""
    return quick_python() if _borrows_pip() and not _is_own() else sys.executable


def _answers(python: Path) -> bool:
    """Whether there is a Python of our own version in the environment."""
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    asked = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        found = subprocess.run([python, "-c", asked], capture_output=True, text=True, check=False)
    except OSError:
        return False
    return found.stdout.strip() == version


def _make(python: Path, *, anew: bool) -> list[str]:
    """Make the environment where there is none that works, or `anew`, and give the command for pip.

    The pip at hand is used from outside, because some systems ship `venv` without the pip to put into it."""
    borrowed = _borrows_pip()
    if anew or not _answers(python):
        _run([_chosen_python(), "-m", "venv", "--clear", *(["--without-pip"] if borrowed else []), str(VENV)])
    command = [sys.executable, "-m", "pip", "--python", str(python)] if borrowed else [str(python), "-m", "pip"]
    return [*command, "--quiet", "--no-input", "--disable-pip-version-check", "--retries", "5"]


def quick_python() -> str:
    """The Python to make the environment with: our own, or, if ours was compiled without optimisations, the system's
    of the same version."""
    own = Path(sys.executable)
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    optimised = "--enable-optimizations" in str(sysconfig.get_config_var("CONFIG_ARGS"))
    systems = shutil.which(f"python{version}", path=str(SYSTEM_PROGRAMS))
    if os.name == "nt" or optimised or systems is None or own.resolve().is_relative_to(SYSTEM_PROGRAMS):
        return str(own)
    makes_environments = subprocess.run([systems, "-I", "-c", "import venv"], capture_output=True, check=False)
    return systems if makes_environments.returncode == 0 else str(own)


def install(pip: Sequence[str], python: Path, lock_names: Sequence[str]) -> None:
    """Install the locks, then the project. uv may be unable where pip is not: it has no wheel for each machine, and
    does not read how pip is configured."""
    by_pip = [*pip, "install", "--no-compile"]
    by_uv = [str(python.with_name("uv")), "pip", "install", "--quiet", "--no-cache", "--python", str(python)]
    use_uv = _succeeds([*by_pip, *_from(["install"])])
    for wanted in (_from(lock_names), ["--no-deps", "--no-build-isolation", "-e", str(ROOT)]):
        use_uv = use_uv and _succeeds([*by_uv, *wanted], environ=_environ_of_uv())
        if not use_uv:
            _run([*by_pip, *wanted])


def _from(lock_names: Sequence[str]) -> list[str]:
    locks = [part for name in lock_names for part in ("-r", str(LOCKS / f"{name}.lock"))]
    return ["--require-hashes", "--only-binary", ":all:", *locks]


def _environ_of_uv() -> dict[str, str]:
    """What the environment tells pip about the index and about certificates, in uv's words. As pip, it trusts what the
    system trusts, such as the certificate of a company's proxy."""
    words = {"PIP_INDEX_URL": "UV_DEFAULT_INDEX", "PIP_CERT": "SSL_CERT_FILE"}
    told = {uv: os.environ[pip] for pip, uv in words.items() if pip in os.environ}
    return {"UV_SYSTEM_CERTS": "true", **told, **os.environ}


def _succeeds(command: Sequence[str], environ: Mapping[str, str] | None = None) -> bool:
    try:
        done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)
    except OSError as problem:
        print(f"pip is used, as this could not be run: {' '.join(command)}: {problem}", file=sys.stderr, flush=True)
        return False
    if done.returncode != 0:
        print(f"pip is used, as this failed: {' '.join(command)}\n{done.stderr}", file=sys.stderr, flush=True)
    return done.returncode == 0


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, cwd=ROOT, check=False)
    if done.returncode != 0:
        raise NotPrepared(f"This failed with exit code {done.returncode}: {' '.join(command)}")
