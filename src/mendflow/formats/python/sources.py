"""Locates a Python function's code: the module and the folder that a pilot imports it from."""

import ast
import hashlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from mendflow.core.model.flow import Flow
from mendflow.core.model.jobs import MARK_CHARS, FunctionRef
from mendflow.core.model.values import FileRef
from mendflow.formats.python.dynamic_lookups import ImportNode
from mendflow.formats.python.function_slices import FunctionSlices
from mendflow.formats.python.problems import bad_flow, is_of_python


def function_ref(function: Callable[..., Any]) -> FunctionRef:
    """The function by name. It must be at the top level of a file, so that it can be imported; Python's own are there
    already."""
    name = function.__qualname__
    if "<" in name:
        raise bad_flow(
            f"the job `{function.__name__}` is defined inside another function; move it to the top of its file"
        )
    if inspect.isbuiltin(function) and not inspect.ismodule(function.__self__):
        raise bad_flow(f"`{name}` belongs to a value, and a pilot cannot import it; write a function that calls it")
    source = None if inspect.isbuiltin(function) else inspect.getsourcefile(function)
    if inspect.isbuiltin(function) or is_of_python(source or ""):
        return FunctionRef(module=function.__module__, name=name)
    if source is None or not Path(source).is_file():
        raise bad_flow(f"the job `{name}` is not in a file; put it into one, so that pilots can import it")
    path = Path(source).resolve()
    parts = function.__module__.split(".")
    inside = path.with_suffix("").parts[-len(parts) :]
    if function.__module__ != "__main__" and list(inside) == parts:
        return FunctionRef(module=function.__module__, name=name, folder=str(path.parents[len(parts) - 1]))
    return FunctionRef(module=path.stem, name=name, folder=str(path.parent))


def functions_of(flow: Flow) -> list[FunctionRef]:
    """The Python functions of a flow and of the flows it calls."""
    found: list[FunctionRef] = []
    pending: list[Any] = [flow]
    while pending:
        value = pending.pop()
        if isinstance(value, FunctionRef):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            pending.extend(value)
        elif isinstance(value, msgspec.Struct):
            pending.extend(getattr(value, field) for field in value.__struct_fields__)
    return found


def code_files(flow: Flow) -> dict[str, Path]:
    """The source files of a flow's Python functions, by module. A module that is not in its folder is installed on the
    pilot's machine, and has no file here."""
    return {each.module: path for each in functions_of(flow) if (path := source_of(each)) is not None}


class ModulesBeside:
    """The modules in the folder that a source file imports, and that these import, by their paths below it. What is
    imported by other means than `import` is not seen. Each file is read once."""

    def __init__(self, path: Path, folder: Path) -> None:
        self._path = path
        self._folder = folder
        self._contents: dict[str, bytes] = {}
        self._trees: dict[str, ast.Module | None] = {}
        self._imports: dict[str, set[str]] = {}
        self.lead_back = False  # whether one of them, or the file itself, imports the file
        pending = [path]
        while pending:
            for other in self._imported_by(pending.pop()):
                name = self._name(other)
                if other != path and name not in self._contents:
                    self._contents[name] = other.read_bytes()
                    pending.append(other)
        self.digests = {name: hashlib.sha256(content).hexdigest() for name, content in self._contents.items()}

    @property
    def content(self) -> bytes:
        """All of them as one file, so that a case has them as they were when its flow was deployed."""
        return msgspec.msgpack.encode({name: self._contents[name] for name in sorted(self._contents)})

    @property
    def ref(self) -> FileRef | None:
        if not self._contents:
            return None
        content = self.content
        return FileRef(sha256=hashlib.sha256(content).hexdigest(), bytes=len(content), name="modules")

    def of(self, statement: ImportNode) -> dict[str, str]:
        """Those of one import statement of the file, with all that they import, and their digests."""
        pending = [self._name(each) for each in _named_by(statement, self._path, self._folder)]
        found: dict[str, str] = {}
        while pending:
            name = pending.pop()
            if name in self.digests and name not in found:
                found[name] = self.digests[name]
                pending.extend(self._imports.get(name, ()))
        return found

    def tree(self, path: str) -> ast.Module | None:
        return self._trees.get(path)

    def _imported_by(self, path: Path) -> list[Path]:
        own = path == self._path
        try:
            tree = ast.parse(path.read_bytes() if own else self._contents[self._name(path)])
        except (SyntaxError, ValueError, RecursionError):
            return []  # whoever imports it is told
        nodes = (node for node in ast.walk(tree) if isinstance(node, ImportNode))
        found = list(dict.fromkeys(each for node in nodes for each in _named_by(node, path, self._folder)))
        if not own:
            self._trees[self._name(path)] = tree
            self._imports[self._name(path)] = {self._name(each) for each in found}
        self.lead_back = self.lead_back or self._path in found
        return found

    def _name(self, path: Path) -> str:
        return path.relative_to(self._folder).as_posix()


def module_bundles(flow: Flow) -> dict[Path, ModulesBeside]:
    """The modules beside the sources of a flow's functions, by these sources."""
    found: dict[Path, ModulesBeside] = {}
    for each in functions_of(flow):
        path = source_of(each)
        if path is not None and path not in found:
            found[path] = ModulesBeside(path, Path(each.folder))
    return found


def with_code(flow: Flow, kept: Mapping[Path, FileRef], bundles: Mapping[Path, ModulesBeside] | None = None) -> Flow:
    """The flow with each function's source as the stored file that it has become, and the modules beside it."""
    known = module_bundles(flow) if bundles is None else bundles
    slices = {path: _slices_of(path, beside, kept[path]) for path, beside in known.items() if path in kept}
    uses: dict[tuple[Path, str], str] = {}

    def changed(value: Any) -> Any:
        if isinstance(value, FunctionRef):
            path = source_of(value)
            if path is None or path not in known or path not in kept:
                return value
            found = known[path]
            if (path, value.name) not in uses:
                part = slices[path] if "." not in value.module else None  # loading a package runs those around it
                uses[path, value.name] = part.digest(value.name) if part is not None else ""
            return msgspec.structs.replace(
                value,
                code=kept[path],
                imports=imports_digest(found.digests),
                modules=module_marks(found.digests),
                bundle=found.ref,
                uses=uses[path, value.name],
            )
        if isinstance(value, tuple):
            return tuple(changed(part) for part in value)
        if isinstance(value, msgspec.Struct):
            fields = {name: changed(getattr(value, name)) for name in value.__struct_fields__}
            return msgspec.structs.replace(value, **fields)
        return value

    result: Flow = changed(flow)
    return result


def _slices_of(path: Path, beside: ModulesBeside, stored: FileRef) -> FunctionSlices | None:
    """What the functions of a file use; None if that cannot be told: what imports the file in turn may change anything
    in it, and somebody may have edited it since it was stored."""
    try:
        source = path.read_bytes()
        if beside.lead_back or hashlib.sha256(source).hexdigest() != stored.sha256:
            return None
        return FunctionSlices(source, beside)
    except (OSError, SyntaxError, ValueError, RecursionError):
        return None


def source_of(function: FunctionRef) -> Path | None:
    base = Path(function.folder, *function.module.split(".")) if function.folder else None
    if base is None:
        return None
    return next((path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()), None)


def imports_digest(modules: Mapping[str, str]) -> str:
    """One digest of all these modules; empty if there are none."""
    if not modules:
        return ""
    return hashlib.sha256("\n".join(f"{name} {modules[name]}" for name in sorted(modules)).encode()).hexdigest()[:40]


def module_marks(modules: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(f"{modules[name][:MARK_CHARS]} {name}" for name in sorted(modules))


def _named_by(node: ImportNode, path: Path, folder: Path) -> Iterator[Path]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield from _files_of(folder, alias.name.split("."))
        return
    base = path.parents[node.level - 1] if node.level else folder
    module = node.module.split(".") if node.module else []
    if base.is_relative_to(folder):
        yield from _files_of(base, module)
        for alias in node.names:
            yield from _files_of(base, [*module, alias.name])


def _files_of(base: Path, parts: list[str]) -> Iterator[Path]:
    """The files that are run when a module is imported: its own, and those of the packages around it."""
    for depth in range(len(parts) + 1):
        place = base.joinpath(*parts[:depth])
        candidates = (
            [place / "__init__.py"] if depth == 0 else [place.with_name(place.name + ".py"), place / "__init__.py"]
        )
        yield from (each for each in candidates if each.is_file())
