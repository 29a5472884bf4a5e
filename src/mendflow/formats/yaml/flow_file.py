"""Reads a whole flow file: the result is a flow, or the list of everything that is wrong."""

from pathlib import Path
from typing import Any, Final

import msgspec

from mendflow.core.data.path_patterns import is_pattern
from mendflow.core.engine.plan import walk_activities
from mendflow.core.expressions import is_template
from mendflow.core.model.errors import BadFlow, Problem
from mendflow.core.model.flow import FILE, FILES, TABLE, Activity, Assign, Copy, Empty, Flow, Input, Sequence
from mendflow.core.model.ids import FlowName
from mendflow.core.model.values import Value, file_of
from mendflow.formats import tables
from mendflow.formats.hints import hint_for, with_hint
from mendflow.formats.names import NAME
from mendflow.formats.spelling import suggestion_for
from mendflow.formats.yaml import basic_steps, flow_keys, structured_steps
from mendflow.formats.yaml.builder import FlowFinder, StepBuilder, StepFactory, StepHeader
from mendflow.formats.yaml.containers import container_of
from mendflow.formats.yaml.document import (
    ListNode,
    MapNode,
    ScalarNode,
    YamlNode,
    describe,
    parse,
    plain_data,
    setting_data,
)
from mendflow.formats.yaml.fields import Fields, fields_of
from mendflow.formats.yaml.flow_hints import FLOW_HINTS, INPUT_HINTS, TYPES_ELSEWHERE
from mendflow.formats.yaml.flow_tables import read_flow_table
from mendflow.formats.yaml.hidden_passwords import refuse_hidden_passwords
from mendflow.formats.yaml.job_graph import parallel_jobs
from mendflow.formats.yaml.job_hints import STEP_HINTS
from mendflow.formats.yaml.job_steps import python_job, shell_job
from mendflow.formats.yaml.limits import limits_of
from mendflow.formats.yaml.reader import YamlReader
from mendflow.formats.yaml.retries import retries_of
from mendflow.formats.yaml.secrets import secrets_of
from mendflow.formats.yaml.sent_files import SentFiles
from mendflow.formats.yaml.shapes import DataShape
from mendflow.formats.yaml.triggers import triggers_of
from mendflow.formats.yaml.unsent_files import sent_source, sent_sources

MAKERS: Final[dict[str, StepFactory]] = {
    "run": shell_job,
    "python": python_job,
    "user-task": basic_steps.task,
    "stage": basic_steps.stage,
    "call": basic_steps.call,
    "select": basic_steps.select,
    "set": basic_steps.assign,
    "wait": basic_steps.wait,
    "wait-until": basic_steps.wait_until,
    "throw": basic_steps.throw,
    "rethrow": basic_steps.rethrow,
    "compensate": basic_steps.compensate,
    "receive": basic_steps.receive,
    "reply": basic_steps.reply,
    "invoke": basic_steps.invoke,
    "exit": basic_steps.exit_case,
    "empty": basic_steps.empty,
    "steps": structured_steps.steps,
    "jobs": structured_steps.jobs,
    "parallel": structured_steps.parallel,
    "do": structured_steps.do,
    "choose": structured_steps.choose,
    "choose-many": structured_steps.choose,
    "while": structured_steps.while_loop,
    "until": structured_steps.until_loop,
    "scope": structured_steps.scope,
    "pick": structured_steps.pick,
    "for-each": structured_steps.for_each,
}
TYPES: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "number": (int, float),
    "boolean": (bool,),
    "list": (list,),
    "map": (dict,),
    "file": (str,),
    TABLE: (str, list),
    FILES: (str, list),
}
DATA: Final = DataShape()
LISTS: Final = ("list", TABLE, FILES)
WANTED: Final = {
    FILES: "a path with or without `*`, or a list of such",
    TABLE: "the path of a CSV, TSV, JSON or YAML file, or a list of maps",
}
assert set(flow_keys.KINDS) | {"for-each"} == set(MAKERS), "every kind of step has a maker"


def read(
    text: str,
    file: str,
    folder: Path,
    callables: FlowFinder,
    *,
    is_alone: bool = False,
    sent: SentFiles | None = None,
) -> Flow:
    """The flow of a text. Raises BadFlow with everything that is wrong."""
    root, problems = parse(text, file)
    reader = YamlReader(file, text, folder, is_alone=is_alone, sent=sent)
    reader.problems.extend(problems)
    refuse_hidden_passwords(reader, root)
    flow = build_flow(reader, root, callables)
    reader.judge_names(activities_of(flow) if flow is not None else {})
    if reader.problems or flow is None:
        raise BadFlow(problems=in_order(reader.problems, file))
    return flow


def activities_of(flow: Flow) -> dict[str, Activity]:
    """Everything in a flow, by name."""
    return {activity.name: activity for activity in walk_activities(flow)}


def in_order(problems: list[Problem], file: str) -> list[Problem]:
    """This file's problems first, from top to bottom."""
    return sorted(problems, key=lambda each: (each.file != file, each.file, each.line, each.column))


def build_flow(reader: YamlReader, root: YamlNode, callables: FlowFinder) -> Flow | None:
    if not isinstance(root, MapNode):
        reader.problem(root, f"a flow is a map with `jobs:` or `steps:`, not {describe(root)}")
        return None
    fields = Fields(reader, root, flow_keys.FLOW)
    for name, entry in root.entries.items():
        if name not in flow_keys.FLOW and not name.startswith("x-"):
            refuse_flow_key(reader, entry.key, name)
    build = StepBuilder(reader, MAKERS, callables)
    name = fields.get("name") or name_from(reader.file)
    inputs = inputs_of(reader, fields.node_of("inputs"))
    reader.inputs = {name: given.type for name, given in inputs.items()}
    build.env = fields.get("env", {})
    build.shell = fields.get("shell") or ""
    build.defaults = defaults_of(reader, fields.node_of("defaults"))
    if (container := fields.node_of("container")) is not None:
        build.defaults.setdefault("container", container_of(reader, container))
    reader.on_failure = "stop" if fields.get("on-failure") == "stop" else "finish"
    variables = fields.get("variables", {})
    for variable in variables:
        reader.assigned(variable)
    body = with_variables(variables, body_of(build, fields, name), name)
    inputs = with_lists(reader, inputs)
    flow = Flow(
        name=FlowName(name),
        body=body,
        inputs=inputs,
        outputs=fields.get("outputs", {}),
        description=fields.get("description", ""),
        calls=tuple(build.called.values()),
        folder=str(reader.folder),
        on_unhandled=fields.get("on-unhandled", ""),
    )
    triggers = triggers_of(reader, fields.node_of("on"), flow)
    return msgspec.structs.replace(flow, triggers=triggers) if triggers is not None else flow


def refuse_flow_key(reader: YamlReader, key: ScalarNode, name: str) -> None:
    message = f"a flow has no key `{name}`"
    if hint_for(name, FLOW_HINTS):
        reader.problem(key, with_hint(message, name, FLOW_HINTS))
    else:
        reader.problem(key, message, suggestion_for(name, flow_keys.FLOW))


def name_from(file: str) -> str:
    stem = "".join(char if char.isascii() and (char.isalnum() or char in "_-") else "-" for char in Path(file).stem)
    stem = stem.strip("-")
    return stem if NAME.fullmatch(stem) else f"flow-{stem}".strip("-")


def body_of(build: StepBuilder, fields: Fields, name: str) -> Activity:
    jobs, steps = fields.node_of("jobs"), fields.node_of("steps")
    if jobs is not None and steps is not None:
        build.reader.problem(fields.node.entries["steps"].key, "a flow has `jobs` or `steps`, not both")
    if jobs is not None:
        return parallel_jobs(build, jobs, StepHeader(name=f"{name}.jobs", prefix=""), build.reader.on_failure)
    if steps is not None:
        return Sequence(name=f"{name}.steps", body=build.in_order(steps, StepHeader(name="", prefix="")))
    build.reader.problem(fields.node, "the flow does nothing: give it `jobs:` or `steps:`")
    return Empty(name=f"{name}.jobs")


def with_variables(variables: dict[str, Value], body: Activity, name: str) -> Activity:
    """The flow's own variables get their values before anything else happens."""
    if not variables:
        return body
    copies = tuple(Copy(to=variable, value=value) for variable, value in variables.items())
    return Sequence(name=f"{name}.flow", body=(Assign(name=f"{name}.variables", copies=copies, first=True), body))


def defaults_of(reader: YamlReader, node: YamlNode | None) -> dict[str, Any]:
    fields = fields_of(reader, node, flow_keys.DEFAULTS, "`defaults`", STEP_HINTS) if node is not None else None
    if fields is None:
        return {}
    found = {name: fields.get(name) for name in fields.node.entries if name in flow_keys.DEFAULTS}
    if "secrets" in found:
        found["secrets"] = secrets_of(reader, fields)
    if "limits" in found:
        found["limits"] = limits_of(reader, found["limits"])
    if (container := fields.node_of("container")) is not None:
        found["container"] = container_of(reader, container)
    if isinstance(node := fields.node_of("retries"), (MapNode, ListNode, ScalarNode)):
        found["retries"] = retries_of(reader, node)
    return found


def inputs_of(reader: YamlReader, node: YamlNode | None) -> dict[str, Input]:
    if node is None:
        return {}
    if not isinstance(node, MapNode):
        reader.problem(node, f"`inputs` is a map of inputs by name, not {describe(node)}", likely_inputs(node))
        return {}
    found = {}
    for name, entry in node.entries.items():
        if not NAME.fullmatch(name):
            reader.problem(entry.key, f"`{name}` is not a name: use letters, digits, _ and -")
        found[name] = input_of(reader, entry.value)
    return found


def likely_inputs(node: YamlNode) -> str:
    """The map that was probably meant by names alone: each is required."""
    names = node.parts if isinstance(node, ListNode) else [node]
    words = [part.value for part in names if isinstance(part, ScalarNode) and NAME.fullmatch(str(part.value))]
    return f"`inputs: {{{', '.join(f'{word}: ' for word in words).rstrip()}}}`" if words else ""


def input_of(reader: YamlReader, node: YamlNode) -> Input:
    """An input in full, or just its default, or nothing, which makes it required."""
    if isinstance(node, ScalarNode) and node.value is None:
        return Input(required=True)
    if not isinstance(node, MapNode):
        default = default_of(reader, node, "")
        refuse_bare_type(reader, node)
        return Input(default=default, type=type_of(default), inferred=type_of(default) == "number")
    fields = fields_of(reader, node, flow_keys.INPUT, "an input", INPUT_HINTS)
    assert fields is not None
    wanted = fields.get("type", "")
    default_node = fields.node_of("default")
    default = default_of(reader, default_node, wanted) if default_node is not None else None
    if default_node is not None and default is not None and wanted and not fits_type(default, wanted):
        shown = WANTED.get(wanted, f"a {wanted}")
        reader.problem(default_node, f"the default of a {wanted} must be {shown}, not {describe(default_node)}")
    columns, read_from = fields.get("columns", {}), ""
    if columns and wanted != TABLE:
        reader.problem(fields.node.entries["columns"].key, "`columns` are those of a table", "`type: table`")
    elif isinstance(default, str) and wanted == TABLE:
        read_from, default = default, read_flow_table(reader, default_node, default, columns)
    read_digest = tables.digest_of(reader.folder / read_from) if read_from and not reader.is_alone else ""
    if wanted == FILES and default_node is not None and fits_type(default, wanted):
        default = sent_sources(reader, default_node, default)
    elif wanted == FILE and reader.is_alone and default_node is not None:
        written, default = default, sent_source(reader, default_node, default)
        if (stored := file_of(default)) is not None and isinstance(written, str):
            read_from, read_digest = written, stored.sha256
    return Input(
        type=wanted,
        description=fields.get("description", ""),
        required=default_node is None,
        default=default,
        columns=columns if wanted == TABLE else {},
        read_from=read_from,
        read_digest=read_digest,
    )


def default_of(reader: YamlReader, node: YamlNode, wanted: str) -> Value:
    """The data of a default: of a declared number `1.10` is that number, of a declared string `1.9` is that text."""
    if is_template(plain_data(node)):
        reader.problem(node, "no expression can stand here: a default is data as it is")
        return plain_data(node)
    if wanted == "number":
        return setting_data(node)
    if isinstance(node, ScalarNode) and wanted == "string" and node.value is not None:
        return node.written
    if isinstance(node, ScalarNode) and wanted == "boolean":
        return node.value
    return DATA.read(reader, node)


def with_lists(reader: YamlReader, inputs: dict[str, Input]) -> dict[str, Input]:
    """The inputs, of which those that loops go over are lists: one of no type is made one, any other type is wrong."""
    found = dict(inputs)
    for name, place in reader.looped_inputs:
        given = inputs.get(name)
        if given is None or given.type in LISTS:
            continue
        if not given.type and given.default is None:
            found[name] = msgspec.structs.replace(given, type="list")
            continue
        is_path = isinstance(given.default, str) and is_pattern(given.default)
        shown = msgspec.json.encode(given.default).decode() if given.default is not None else "a"
        likely = f"{{type: files, default: {given.default}}}" if is_path else f"[{shown}]"
        if isinstance(given.default, str) and given.default.endswith(tables.ENDINGS):
            likely = f"{{type: table, default: {given.default}}}"
        message = f"a loop goes over a list, and the input `{name}` is a {given.type or 'value of another kind'}"
        reader.problem(place, f"{message}; declare it as a list", f"`{name}: {likely}`")
    return found


def refuse_bare_type(reader: YamlReader, node: YamlNode) -> None:
    """A type in place of a default would be the text of its name, and nobody would see it."""
    word = node.value if isinstance(node, ScalarNode) else None
    meant = word if word in TYPES else hint_for(word, TYPES_ELSEWHERE) if isinstance(word, str) else ""
    if meant and reader.text[node.place.start : node.place.start + 1] not in ("'", '"'):
        message = f"`{word}` is a type, and what stands here is the default; in quotes it is that text"
        reader.problem(node, message, f"`{{type: {meant}}}`")


def fits_type(value: Value, wanted: str) -> bool:
    if wanted in (FILES, TABLE) and isinstance(value, list):
        return all(isinstance(each, str if wanted == FILES else dict) for each in value)
    return isinstance(value, TYPES[wanted]) and (wanted == "boolean" or not isinstance(value, bool))


def type_of(value: Value) -> str:
    return next(name for name in TYPES if fits_type(value, name))
