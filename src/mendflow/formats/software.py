"""What a flow says about the software of a job: `environment` and `modules`, in a flow file and in Python alike."""

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Final

from msgspec.structs import replace

from mendflow.core.model.software import CONDA, LOCK, PROJECT, REQUIREMENTS, Software
from mendflow.formats.spelling import nearest_word
from mendflow.lazy import lazy_pattern

KEYS: Final = ("requirements", "packages", "uv", "conda", "python")
PACKAGE_WORDS: Final = ("pip", "dependencies", "pypi", "install", "libraries")
EXPECTED: Final = (
    "a file beside the flow (requirements.txt, uv.lock, or a conda file such as environment.yaml), a list of packages, "
    "or a map with one of requirements, packages, uv, conda, and perhaps python"
)
MODULES_EXPECTED: Final = "the name of a module such as gcc/12.2, or a list of names"
VARIABLES: Final = "environment variables are given under `env:`"
VERSION: Final = lazy_pattern(r"\d+(\.\d+){0,2}")
MODULE_NAME: Final = lazy_pattern(r"[A-Za-z0-9_][A-Za-z0-9_.+/@:-]*")
PACKAGE: Final = lazy_pattern(r"[A-Za-z0-9][A-Za-z0-9._-]*\s*(\[[^\]\n]*\])?\s*([<>=!~;@ ][^\n\0]*)?")
OTHER_FILE: Final = lazy_pattern(r"(?:-r|-c|--requirement|--constraint)[ =]*(\S+)")
LOCAL_PACKAGE: Final = lazy_pattern(r"(?:-e\b|--editable\b|\.{0,2}/|file:)")
FILES_MAX: Final = 20


class BadSoftware(Exception):
    """What was given describes no environment; the message says why."""

    def __init__(self, message: str, suggestion: str = "") -> None:
        super().__init__(message)
        self.suggestion = suggestion


def environment_of(given: Any, folder: Path) -> Software:
    """The environment that plain data describe; files are looked for in the flow's folder."""
    if isinstance(given, str):
        return _of_file(given, folder)
    if isinstance(given, Sequence) and not isinstance(given, bytes):
        return _of_packages(given)
    if not isinstance(given, Mapping):
        raise BadSoftware(f"`environment` is {EXPECTED}, not {given!r:.80}")
    return _of_map({str(key): each for key, each in given.items()}, folder)


def modules_of(given: Any) -> tuple[str, ...]:
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, Sequence) or not all(isinstance(each, str) for each in names):
        raise BadSoftware(f"`modules` is {MODULES_EXPECTED}, not {given!r:.80}")
    bad = next((each for each in names if not MODULE_NAME.fullmatch(each)), None)
    if bad is not None:
        raise BadSoftware(f"`{bad}` cannot be the name of a module; write it as `module load` takes it, as gcc/12.2")
    return tuple(names)


def _of_map(given: dict[str, Any], folder: Path) -> Software:
    if unknown := next((key for key in given if key not in KEYS), None):
        hint = "packages" if unknown in PACKAGE_WORDS else nearest_word(unknown, KEYS)
        raise BadSoftware(f"`environment` has no key `{unknown}`; {VARIABLES}", hint)
    described = [key for key in KEYS[:4] if key in given]
    if len(described) != 1:
        raise BadSoftware("`environment` needs one of requirements, packages, uv and conda")
    (key,) = described
    python = str(given.get("python", ""))
    if python and not VERSION.fullmatch(python):
        raise BadSoftware(f"`python` is a version such as 3.12, not {python!r:.80}")
    if python and key == "conda":
        raise BadSoftware("`python` of a conda environment is one of its dependencies; write it into the file")
    value = given[key]
    if key == "packages":
        found = _of_packages([value] if isinstance(value, str) else value)
    elif not isinstance(value, str):
        raise BadSoftware(f"`{key}` is the path of a file beside the flow, not {value!r:.80}")
    else:
        found = _READERS[key](value, folder)
    return replace(found, python=python)


def _of_packages(given: Any) -> Software:
    if not isinstance(given, Sequence) or not given or not all(isinstance(each, str) for each in given):
        raise BadSoftware(f"packages are a list of texts such as numpy==2.1, not {given!r:.80}")
    bad = next((each for each in given if not PACKAGE.fullmatch(each.strip())), None)
    if bad is not None:
        raise BadSoftware(f"`{bad:.80}` is not a package with its version, such as numpy==2.1 or pandas>=2,<3")
    return Software(packages=tuple(each.strip() for each in given))


def _of_file(path: str, folder: Path) -> Software:
    name = PurePosixPath(path).name
    if name in (LOCK, PROJECT):
        return _of_project(path, folder)
    if name.endswith((".yaml", ".yml")):
        return _of_conda(path, folder)
    if name.endswith((".txt", ".in")):
        return _of_requirements(path, folder)
    raise BadSoftware(f"`{path}` does not tell what it is by its name: `environment` is {EXPECTED}")


def _of_requirements(path: str, folder: Path) -> Software:
    """The file and those that it includes, under the paths that they have beside it."""
    base = PurePosixPath(path).parent
    sources: dict[str, str] = {}
    pending = [(REQUIREMENTS, path)]
    while pending:
        name, each = pending.pop()
        if name in sources:
            continue
        text = _existing(each, folder).read_text(encoding="utf-8", errors="replace")
        sources[name] = each
        if len(sources) > FILES_MAX:
            raise BadSoftware(f"`{path}` includes more than {FILES_MAX} files; put them into one")
        for number, line in enumerate(text.splitlines(), 1):
            if LOCAL_PACKAGE.match(line.strip()):
                raise BadSoftware(
                    f"{each}:{number}: `{line.strip():.80}` is a package beside the flow, which no other machine has; "
                    "name a published one, or bring it by `inputs:`"
                )
            if included := OTHER_FILE.match(line.strip()):
                if ".." in PurePosixPath(included[1]).parts:
                    raise BadSoftware(f"{each}:{number}: `{included[1]}` is above the folder of {path}; put it beside")
                inner = PurePosixPath(each).parent / included[1]
                pending.append((str(inner.relative_to(base)), str(inner)))
    return Software(sources=sources)


def _of_project(path: str, folder: Path) -> Software:
    """A project of uv: its lock, and the description beside it."""
    parent = PurePosixPath(path).parent
    sources = {name: str(parent / name) for name in (PROJECT, LOCK)}
    for each in sources.values():
        if not _inner(each, folder).is_file():
            raise BadSoftware(
                f"there is no file `{each}`; uv needs {PROJECT} and {LOCK} beside each other: run uv lock"
            )
    return Software(kind="uv", sources=sources)


def _of_conda(path: str, folder: Path) -> Software:
    _existing(path, folder)
    return Software(kind="conda", sources={CONDA: path})


def _existing(path: str, folder: Path) -> Path:
    found = _inner(path, folder)
    if not found.is_file():
        beside = [each.name for each in found.parent.iterdir()] if found.parent.is_dir() else []
        raise BadSoftware(f"there is no file `{path}`", nearest_word(found.name, beside))
    return found


def _inner(path: str, folder: Path) -> Path:
    found = (folder / path).resolve()
    if PurePosixPath(path).is_absolute() or not found.is_relative_to(folder.resolve()):
        raise BadSoftware(f"`{path}` leads out of the flow's folder; keep it in the folder or below")
    return found


_READERS: Final = {"requirements": _of_requirements, "uv": _of_project, "conda": _of_conda}


def with_modules(environment: Software | None, modules: tuple[str, ...]) -> Software | None:
    """Both together; None if there is neither."""
    if environment is None and not modules:
        return None
    return replace(environment or Software(), modules=modules)
