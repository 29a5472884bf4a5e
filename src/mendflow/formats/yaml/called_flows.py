"""Flow files that call each other: in the first one's folder or below, each read once, never in a cycle."""

from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from mendflow.core.model.errors import BadFlow
from mendflow.core.model.flow import Flow
from mendflow.formats import JOB
from mendflow.formats.files import flow_text, select_flow
from mendflow.formats.spelling import nearest_word
from mendflow.formats.yaml.document import YamlNode
from mendflow.formats.yaml.flow_file import read
from mendflow.formats.yaml.reader import YamlReader
from mendflow.formats.yaml.sent_files import SentFiles
from mendflow.lazy import LazyModule

if TYPE_CHECKING:
    from mendflow.formats import jsdl
    from mendflow.formats.python import loader as python_files
else:
    jsdl = LazyModule("mendflow.formats.jsdl")
    python_files = LazyModule("mendflow.formats.python.loader")

CALLED_MAX: Final = 200


class FlowFileLoader:
    """`is_alone`: no file is read, not even one that is called. `sent`: those that came with the text."""

    def __init__(self, root: Path, *, is_alone: bool = False, sent: SentFiles | None = None) -> None:
        self._root = root if is_alone else root.resolve()
        self._is_alone = is_alone
        self._sent = sent
        self._open: list[Path] = []  # the files that are being read, the outermost first
        self._known: dict[str, Flow | None] = {}
        self._called = 0

    def load(self, path: Path, file_name: str) -> Flow:
        """The flow of a YAML file."""
        return self.read(flow_text(path, file_name), path, file_name)

    def read(self, text: str, path: Path, file_name: str) -> Flow:
        if self._is_alone:
            return read(text, file_name, self._root, self, is_alone=True, sent=self._sent)
        self._open.append(path.resolve())
        try:
            return read(text, file_name, path.parent.resolve(), self)
        finally:
            self._open.pop()

    def find(self, reader: YamlReader, node: YamlNode, path: str) -> Flow | None:
        """The flow of a file that is named in another one."""
        assert not self._is_alone, "a text alone calls flows by their names"
        file, _, name = path.partition(".py:")
        file = f"{file}.py" if name else path
        target = (reader.folder / file).resolve()
        self._called += 1
        if PurePosixPath(file).is_absolute() or not target.is_relative_to(self._root):
            reader.problem(node, f"`{file}` leads out of the flow's folder; a called flow must be in it or below")
        elif not target.is_file():
            others = (each.name for each in target.parent.iterdir()) if target.parent.is_dir() else ()
            reader.problem(node, f"there is no flow file `{file}`", nearest_word(target.name, others))
        elif target in self._open:
            circle = [*self._open[self._open.index(target) :], target]
            circle_text = " -> ".join(each.name for each in circle)
            reader.problem(node, f"these flows call each other in a cycle: {circle_text}")
        elif self._called > CALLED_MAX:
            reader.problem(node, f"more than {CALLED_MAX} calls of flow files; deploy the called flows by themselves")
        else:
            return self._once(reader, target, path, name)
        return None

    def _once(self, reader: YamlReader, target: Path, path: str, name: str) -> Flow | None:
        key = f"{target}:{name}"
        if key not in self._known:
            file_name = str(Path(reader.file).parent / path.partition(".py:")[0]) + (".py" if name else "")
            try:
                if target.suffix == ".py":
                    self._known[key] = select_flow(python_files.load_python(target, name), name, file_name)
                elif target.suffix == JOB:
                    self._known[key] = jsdl.load_jsdl(target, file_name)
                else:
                    self._known[key] = self.load(target, file_name)
            except BadFlow as error:
                reader.include(error.problems)
                self._known[key] = None
        return self._known[key]
