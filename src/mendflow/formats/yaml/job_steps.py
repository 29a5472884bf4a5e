"""Jobs: shell commands and Python functions, with their resources, inputs and outputs."""

import symtable
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final, Literal

from mendflow.core.data.path_patterns import OWN_FOLDER, is_own_folder, is_pattern, means_many
from mendflow.core.data.paths import name_flaw
from mendflow.core.data.protocols import target_flaw
from mendflow.core.expressions import ExpressionError, expressions_of, template_parts
from mendflow.core.expressions.scanner import scan
from mendflow.core.model.data import LOGICAL_PREFIX
from mendflow.core.model.flow import Activity, Empty, JobActivity
from mendflow.core.model.jobs import FunctionRef, Limits, Submission
from mendflow.core.model.shells import runs_in_shell
from mendflow.core.model.templates import PublicationTemplate, ResourceTemplates
from mendflow.formats.input_files import NoSuchFiles, input_files_of, means_several
from mendflow.formats.software import with_modules
from mendflow.formats.spelling import nearest_word
from mendflow.formats.yaml import flow_keys
from mendflow.formats.yaml.builder import StepBuilder, StepHeader
from mendflow.formats.yaml.command_hints import literal_value, shell_variable
from mendflow.formats.yaml.containers import container_of_job, refuse_for_function
from mendflow.formats.yaml.document import ListNode, MapNode, ScalarNode, YamlNode, describe
from mendflow.formats.yaml.fields import Fields, fields_of
from mendflow.formats.yaml.limits import limits_of
from mendflow.formats.yaml.reader import YamlReader
from mendflow.formats.yaml.retries import stated_retries
from mendflow.formats.yaml.secrets import secrets_of
from mendflow.formats.yaml.shapes import TextShape
from mendflow.formats.yaml.unsent_files import refuse_unread, sent_source
from mendflow.lazy import LazyModule

if TYPE_CHECKING:
    from mendflow.formats.python import module_names
else:
    module_names = LazyModule("mendflow.formats.python.module_names")

UNSTATED_CPUS: Final = 1.0
"""What a job of a file has that states none. A number of its own, which flows are encoded with: their digests, by which
versions and earlier results are known, would be others if it were the model's default, which is left out."""

PUBLISHED_AS: Final = TextShape("a logical name, or a map with `as:`")


def shell_job(build: StepBuilder, fields: Fields, header: StepHeader) -> Activity:
    command = fields.get("run", "")
    node = fields.node_of("run")
    if isinstance(node, ScalarNode) and isinstance(node.value, str) and not command.strip():
        build.reader.problem(node, "the command is empty")
    shell = fields.get("shell") or build.defaults.get("shell") or build.shell
    common = common_fields(build, fields)
    common["env"] = {**build.reader.input_variables.used_in(command), **common["env"]}
    written = literal_value(command, build.reader)
    if written is None and runs_in_shell(shell):
        written = shell_variable(command, build.reader, common["env"])
    if node is not None and written is not None:
        message = f"the shell gets `{written[0]}` as it stands: a value of the flow is `${{{{ {written[1]} }}}}`"
        build.reader.problem(node, message)
    container = container_of_job(build, fields)
    job = JobActivity(command=command, shell=shell, container=container, **header.node(), **common)
    if build.reader.sent is not None and node is not None:
        build.reader.sent.places[job.label or job.name] = node.place
    return job


def python_job(build: StepBuilder, fields: Fields, header: StepHeader) -> Activity:
    node = fields.node_of("python")
    target = fields.get("python")
    given = fields.get("with", {})
    if target is None or node is None:
        return Empty(**header.node())
    refuse_for_function(build, fields)
    args, kwargs = (tuple(given), {}) if isinstance(given, list) else ((), given)
    function = function_of(build.reader, node, target)
    return JobActivity(function=function, args=args, kwargs=kwargs, **header.node(), **common_fields(build, fields))


def function_of(reader: YamlReader, node: YamlNode, target: str) -> FunctionRef:
    """`file.py:function` is a file beside the flow file, `module:function` a module that the pilot can import."""
    module, _, name = target.rpartition(":")
    if not module.endswith(".py"):
        return FunctionRef(module=module, name=name, folder=str(reader.folder))
    path = inner_path(reader, node, module) if not reader.is_alone else None
    if reader.is_alone:
        refuse_unread(reader, node, module)
    if path is None:
        return FunctionRef(module=PurePosixPath(module).stem if reader.is_alone else module, name=name)
    require_function(reader, node, path, name)
    for clash in module_names.name_clashes(path, path.parent):
        reader.problem(node, f"{clash.path.name}, line {clash.line}: {clash.sentence(path.parent)}")
    return FunctionRef(module=path.stem, name=name, folder=str(path.parent))


def require_function(reader: YamlReader, node: YamlNode, path: Path, name: str) -> None:
    """The file must define that name; whether it is a function, only running it would show."""
    try:
        text = path.read_text(encoding="utf-8")
        symbols = symtable.symtable(text, str(path), "exec").get_symbols()
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reader.problem(node, f"{path.name} is not Python that can be read: {error}")
        return
    given = [each.get_name() for each in symbols if each.is_assigned() or each.is_imported() or each.is_namespace()]
    if name not in given and "import *" not in text:
        reader.problem(node, f"{path.name} has no function `{name}`", nearest_word(name, given))


def inner_path(reader: YamlReader, node: YamlNode, text: str) -> Path | None:
    """A file in the flow's folder or below; anything else is refused."""
    path = (reader.folder / text).resolve()
    if PurePosixPath(text).is_absolute() or not path.is_relative_to(reader.folder.resolve()):
        reader.problem(node, f"`{text}` leads out of the flow's folder; keep it in the folder or below")
        return None
    if not path.is_file():
        reader.problem(node, f"there is no file `{text}`", nearest_file(reader.folder / text))
        return None
    return path


def nearest_file(path: Path) -> str:
    try:
        return nearest_word(path.name, (other.name for other in path.parent.iterdir()))
    except OSError:
        return ""


def common_fields(build: StepBuilder, fields: Fields) -> dict[str, Any]:
    """The common fields of shell jobs and Python jobs, with the flow's defaults."""

    def value(name: str, default: Any = None) -> Any:
        found = fields.get(name) if name in fields else build.defaults.get(name)
        return default if found is None else found

    files = files_of(build.reader, fields)
    return {
        "env": {**build.env, **(build.defaults.get("env") or {}), **(fields.get("env") or {})},
        "inputs": inputs_of(build.reader, fields),
        "replicas": replicas_of(build.reader, fields),
        "files": files,
        "file_lists": lists_of(files),
        "publish": publish_of(build.reader, fields, files),
        "link_inputs": value("link-inputs", False),
        "resources": ResourceTemplates(
            cpus=value("cpus", UNSTATED_CPUS),
            memory_bytes=value("memory", 0),
            disk_bytes=value("disk", 0),
            gpus=value("gpus", 0),
            wall_ms=value("time", 0),
            site=value("site", ""),
            hosts=tuple(value("hosts", ())),
            system=value("system", ""),
            machine=value("machine", ""),
        ),
        "limits": limits_of(build.reader, fields.get("limits"), build.defaults.get("limits", Limits()))
        if "limits" in fields
        else build.defaults.get("limits", Limits()),
        "secrets": secrets_of(build.reader, fields, build.defaults.get("secrets") or ()),
        "priority": value("priority", 0),
        "owner": value("owner", ""),
        "expected_ms": value("expected", 0),
        **stated_retries(build, fields),
        "submission": Submission(value("submit", "notify")),
        "stage_in": stage_in(value("stage-in", "parallel")),
        "cache": value("cache"),
        "software": with_modules(value("environment"), value("modules", ())),
        "domain": value("domain", ""),
    }


def stage_in(word: str) -> Literal["parallel", "sequence"]:
    return "sequence" if word == "sequence" else "parallel"


def inputs_of(reader: YamlReader, fields: Fields) -> dict[str, Any]:
    given = fields.get("inputs", {})
    node = fields.node_of("inputs")
    found: dict[str, Any] = {}
    for key, place, path, source in _entries(given, node):
        if isinstance(node, MapNode) and isinstance(key, ScalarNode):
            reader.template(key)
        if path is not None and isinstance(node, MapNode) and is_own_folder(path):
            path = OWN_FOLDER
        elif not require_inner_path(reader, key, path):
            continue
        if path is None or source is None:
            continue
        if not isinstance(node, MapNode) and _asks_for_files_of_a_job(source):
            instead = f'`{{parts/: "{str(source).rstrip("/")}"}}`'
            reader.problem(place, "another job's files need a place in this job's folder", instead)
            continue
        reader.inputs_of_jobs.append((path, source, key.place, reader.areas))
        if reader.is_alone:
            put_inputs(reader, place, found, {path: sent_source(reader, place, source)})
        elif not means_several(source, reader.folder):
            require_source(reader, place, source)
            put_inputs(reader, place, found, {path: source})
        elif path != source and is_pattern(path):
            reader.problem(key, f"`{path}` is to hold the files of `{source}`; name a folder, such as `data/`")
        elif path != source and not path.endswith("/") and is_pattern(source):
            reader.problem(place, f"`{source}` may be several files; write `{path}/` to have a folder of them")
        else:
            try:
                put_inputs(reader, place, found, input_files_of({path: source}, reader.folder))
            except NoSuchFiles as missing:
                reader.problem(place, str(missing), nearest_file(reader.folder / source.rstrip("/")))
    return found


def put_inputs(reader: YamlReader, place: YamlNode, found: dict[str, Any], more: Mapping[str, Any]) -> None:
    if twice := next((path for path in more if path in found and found[path] != more[path]), ""):
        reader.problem(place, f"two of its inputs are to stand at `{twice}`; give one another folder")
    found |= more


def _asks_for_files_of_a_job(template: str) -> bool:
    try:
        found = [each for piece in expressions_of(template) for each in scan(piece.text).references]
    except ExpressionError:
        return False  # which is told of elsewhere
    return any(each.name.startswith("jobs.") and each.members[:1] == ("files",) for each in found)


def _entries(given: Any, node: YamlNode | None) -> Iterator[tuple[YamlNode, YamlNode, str | None, Any]]:
    """What is given as inputs or files, one by one: where its key and its value stand, and what they are. A list gives
    both at once."""
    if isinstance(node, MapNode) and isinstance(given, dict):
        for name, entry in node.entries.items():
            yield entry.key, entry.value, name, given.get(name)
    elif node is not None and isinstance(given, list):
        parts = node.parts if isinstance(node, ListNode) else (node,)
        for part, text in zip(parts, given, strict=True):
            yield part, part, text, text


def replicas_of(reader: YamlReader, fields: Fields) -> dict[str, Any]:
    given = fields.get("replicas", {})
    node = fields.node_of("replicas")
    if isinstance(node, MapNode):
        for path, entry in node.entries.items():
            require_inner_path(reader, entry.key, path)
            if given.get(path) == []:
                reader.problem(entry.value, f"`{path}` needs at least one place where it can be had")
    return {path: places for path, places in given.items() if places}


def files_of(reader: YamlReader, fields: Fields) -> dict[str, Any]:
    """The files that a job leaves, by name; of a path alone, or a list of paths, the path is the name."""
    node = fields.node_of("files")
    found: dict[str, Any] = {}
    for _, place, name, path in _entries(fields.get("files", {}), node):
        if name is None or path is None:
            continue
        if not isinstance(node, MapNode) and "${{" in path:
            reader.problem(place, "a file whose path is worked out needs a name of its own", f"`{{table: {path}}}`")
        elif not isinstance(node, MapNode) and path in found:
            reader.problem(place, f"`{path}` is in the list already")
        elif require_inner_path(reader, place, path) or isinstance(node, MapNode):
            found[name] = path
    return found


def lists_of(files: dict[str, Any]) -> tuple[str, ...]:
    """Which of the files are lists: what is written, and no value of an expression, makes a path a pattern."""
    return tuple(name for name, path in files.items() if means_many(literal_text(path)))


def literal_text(template: str) -> str:
    """What is written in a template beside its expressions; a letter stands for each of these."""
    try:
        return "".join("x" if part.is_expression else part.text for part in template_parts(template))
    except ExpressionError:
        return ""  # which is told of elsewhere


def publish_of(reader: YamlReader, fields: Fields, files: dict[str, Any]) -> dict[str, PublicationTemplate]:
    node = fields.node_of("publish")
    if node is None:
        return {}
    many = lists_of(files)
    if not isinstance(node, MapNode):
        reader.problem(node, f"`publish` is a map from names of files to logical names, not {describe(node)}")
        return {}
    found = {}
    for name, entry in node.entries.items():
        if name not in files:
            reader.problem(entry.key, f"the job has no `{name}` among its `files`", nearest_word(name, files))
        if name in many:
            reader.problem(entry.key, f"`{name}` is several files, and one file is published; pack them into one")
        if (publishing := publishing_of(reader, entry.value)) is not None:
            found[name] = publishing
    return found


def publishing_of(reader: YamlReader, node: YamlNode) -> PublicationTemplate | None:
    """A logical name, or a map with one."""
    if isinstance(node, MapNode):
        fields = fields_of(reader, node, flow_keys.PUBLISHING, "`publish`")
        if fields is None or (fields.node_of("to") is not None) == (fields.node_of("as") is not None):
            if fields is not None:
                reader.problem(node, "say `as:` with a logical name, or `to:` with a URL, and not both")
            return None
        if fields.node_of("to") is not None:
            return delivery_of(reader, fields)
        logical = fields.get("as")
        if logical is None:
            return None
        element, data_set, node = fields.get("on", ""), fields.get("set", ""), fields.node_of("as") or node
    else:
        logical, element, data_set = PUBLISHED_AS.read(reader, node), "", ""
    if logical is None:
        return None
    if "${{" not in logical and (flaw := name_flaw(logical.removeprefix(LOGICAL_PREFIX))):
        reader.problem(node, f"`{logical}` is not a logical name: {flaw}")
    return PublicationTemplate(logical=logical, element=element or "", data_set=data_set or "")


def delivery_of(reader: YamlReader, fields: Fields) -> PublicationTemplate | None:
    """The URL that a file is written to."""
    node, url = fields.node_of("to"), fields.get("to")
    for name in ("on", "set"):
        if (other := fields.node_of(name)) is not None:
            reader.problem(other, f"what goes to a URL has no `{name}:`, which is for logical names")
    if url is None or node is None:
        return None
    if "${{" not in url and (flaw := target_flaw(url)):
        reader.problem(node, f"nothing can be taken there: {flaw}")
    return PublicationTemplate(url=url, overwrite=fields.get("overwrite", True))


def require_inner_path(reader: YamlReader, node: YamlNode, path: str | None) -> bool:
    """Whether the path stays in the job's folder."""
    if path is None:
        return False
    parts = PurePosixPath(path)
    if parts.is_absolute() or ".." in parts.parts or not parts.parts:
        reader.problem(node, f"`{path}` must be a path inside the job's folder, without `..`")
        return False
    return True


def require_source(reader: YamlReader, node: YamlNode, source: Any) -> None:
    """A literal source must exist."""
    if not isinstance(source, str) or "${{" in source:
        return
    if source.startswith(LOGICAL_PREFIX):
        if flaw := name_flaw(source.removeprefix(LOGICAL_PREFIX)):
            reader.problem(node, f"`{source}` names no logical file: {flaw}")
        return
    if "://" in source or reader.is_alone:
        return
    path = reader.folder / source
    try:
        there = path.exists()
    except (OSError, ValueError):
        there = False
    if not there:
        reader.problem(node, f"there is no file `{source}` in {reader.folder}", nearest_file(path))
