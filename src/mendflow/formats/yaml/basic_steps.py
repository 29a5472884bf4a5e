"""Steps without children: tasks, calls, staging, variables, waits, faults, messages."""

from pathlib import PurePosixPath
from typing import Any, Literal

from mendflow.core.engine.messages import URL_NOT_STAGED
from mendflow.core.model.flow import (
    FILES,
    Activity,
    Assign,
    Call,
    Compensate,
    Copy,
    Empty,
    Exit,
    Input,
    Invoke,
    JobActivity,
    Receive,
    Reply,
    Rethrow,
    Stage,
    Throw,
    UserTask,
    Wait,
)
from mendflow.core.model.templates import PublicationTemplate
from mendflow.formats import JOB
from mendflow.formats.spelling import nearest_word
from mendflow.formats.yaml.builder import StepBuilder, StepHeader
from mendflow.formats.yaml.document import MapNode, ScalarNode, YamlNode
from mendflow.formats.yaml.fields import Fields
from mendflow.formats.yaml.job_steps import publishing_of, require_source, stage_in
from mendflow.formats.yaml.reader import YamlReader
from mendflow.formats.yaml.shapes import VARIABLE_PATH, NameShape, TextShape
from mendflow.formats.yaml.unsent_files import sent_source

FLOW_FILES = (".yaml", ".yml", ".py", JOB)
VARIABLE = NameShape("the name of a variable", variable=True)
ELEMENT = TextShape("the name of a storage element")


def task(_: StepBuilder, fields: Fields, header: StepHeader) -> Activity:
    return UserTask(
        role=fields.get("role", ""),
        title=fields.get("user-task", ""),
        description=fields.get("description", ""),
        data=fields.get("data"),
        fields=fields.get("fields", {}),
        deadline_ms=fields.get("deadline", 0),
        **header.node(),
    )


def stage(build: StepBuilder, fields: Fields, header: StepHeader) -> Activity:
    files = fields.get("stage", {})
    node = fields.node_of("stage")
    if isinstance(node, MapNode):
        for name, entry in node.entries.items():
            require_source(build.reader, entry.value, files.get(name))
        if build.reader.is_alone:
            files = {
                name: sent_source(build.reader, entry.value, files.get(name)) for name, entry in node.entries.items()
            }
    order = stage_in(fields.get("order", "parallel"))
    given = {name: source for name, source in files.items() if source is not None}
    if (target := fields.node_of("to")) is not None:
        return copies(build.reader, target, given, order, header)
    if isinstance(node, MapNode):
        for name, entry in node.entries.items():
            if is_url(given.get(name)):
                build.reader.problem(entry.value, URL_NOT_STAGED)
    return Stage(files=given, order=order, **header.node())


def is_url(source: Any) -> bool:
    """Whether it certainly is one: what an expression gives is seen when the flow runs."""
    return isinstance(source, str) and "://" in source.partition("${{")[0]


def copies(
    reader: YamlReader,
    target: YamlNode,
    files: dict[str, Any],
    order: Literal["parallel", "sequence"],
    header: StepHeader,
) -> Activity:
    """Files that go to storage elements: a job of a pilot that runs nothing."""
    if isinstance(target, MapNode):
        publish = {}
        for name, entry in target.entries.items():
            if name not in files:
                reader.problem(entry.key, f"`stage` brings no `{name}`", nearest_word(name, files))
            if (publishing := publishing_of(reader, entry.value)) is not None:
                publish[name] = publishing
        for name in files.keys() - target.entries.keys():
            reader.problem(target, f"say where `{name}` goes too")
    else:
        element = ELEMENT.read(reader, target)
        publish = {name: PublicationTemplate(logical="", element=element or "") for name in files}
    return JobActivity(
        inputs=files,
        files={name: name for name in files},
        publish=publish,
        link_inputs=True,
        stage_in=order,
        **header.node(),
    )


def call(build: StepBuilder, fields: Fields, header: StepHeader) -> Activity:
    node = fields.node_of("call")
    target = fields.get("call", "")
    inputs = fields.get("with", {})
    if node is None or not is_file(target):
        return Call(flow=target, inputs=inputs, domain=fields.get("domain", ""), **header.node())
    if build.reader.is_alone:
        called = PurePosixPath(target.partition(".py:")[0]).stem
        return Call(flow=called, inputs=inputs, domain=fields.get("domain", ""), **header.node())
    flow = build.callables.find(build.reader, node, target)
    if flow is None:
        return Empty(**header.node())
    known = build.called.setdefault(flow.name, flow)
    if known != flow:
        build.reader.problem(node, f"two different files hold a flow named `{flow.name}`; rename one")
    require_inputs(build.reader, fields, flow.inputs, flow.name)
    return Call(flow=flow.name, inputs=inputs, domain=fields.get("domain", ""), **header.node())


def select(_: StepBuilder, fields: Fields, header: StepHeader) -> Activity:
    """A call whose flow is chosen by the rules when it starts."""
    fields.get("select")
    return Call(inputs=fields.get("with", {}), **header.node())


def is_file(target: str) -> bool:
    return target.partition(".py:")[0].endswith(FLOW_FILES) or ".py:" in target or "/" in target


def require_inputs(reader: YamlReader, fields: Fields, inputs: dict[str, Input], flow: str) -> None:
    node = fields.node_of("with")
    given = node.entries if isinstance(node, MapNode) else {}
    for name, entry in given.items():
        if name not in inputs:
            reader.problem(entry.key, f"the flow `{flow}` has no input `{name}`", nearest_word(name, inputs))
    needed = [name for name, wanted in inputs.items() if wanted.required or wanted.type == FILES]
    missing = [name for name in needed if name not in given]
    if missing:
        reader.problem(node or fields.node, f"the flow `{flow}` needs the input `{missing[0]}` under `with:`")


def assign(build: StepBuilder, fields: Fields, header: StepHeader) -> Activity:
    node = fields.node_of("set")
    values = fields.get("set", {})
    if isinstance(node, MapNode):
        for entry in node.entries.values():
            require_variable(build.reader, entry.key)
    return Assign(copies=tuple(Copy(to=name, value=value) for name, value in values.items()), **header.node())


def require_variable(reader: YamlReader, key: ScalarNode) -> None:
    path = VARIABLE_PATH.fullmatch(str(key.value))
    if path is None:
        reader.problem(key, "a variable is expected here, or a part of one, such as `totals.rows` or `list[0]`")
        return
    name = VARIABLE.read(reader, ScalarNode(key.place, path.group(1)))
    if name:
        reader.changed(name, key.place)


def wait(_: StepBuilder, fields: Fields, header: StepHeader) -> Activity:
    return Wait(duration=fields.get("wait", 0), **header.node())


def wait_until(_: StepBuilder, fields: Fields, header: StepHeader) -> Activity:
    return Wait(until=fields.get("wait-until", 0), **header.node())


def throw(_: StepBuilder, fields: Fields, header: StepHeader) -> Activity:
    return Throw(
        fault=fields.get("throw", ""), data=fields.get("data"), message=fields.get("message", ""), **header.node()
    )


def rethrow(build: StepBuilder, fields: Fields, header: StepHeader) -> Activity:
    fields.get("rethrow")
    if not build.reader.is_inside("catch"):
        build.reader.problem(fields.node, "`rethrow` stands only inside the `do` of a `catch`")
    return Rethrow(**header.node())


def compensate(build: StepBuilder, fields: Fields, header: StepHeader) -> Activity:
    scope = fields.get("compensate", "all")
    if not build.reader.is_inside("catch", "undo", "on-terminate"):
        build.reader.problem(fields.node, "`compensate` stands only inside `catch`, `undo` or `on-terminate`")
    return Compensate(scope=None if scope == "all" else scope, **header.node())


def receive(build: StepBuilder, fields: Fields, header: StepHeader) -> Activity:
    channel = fields.get("receive", "")
    build.reader.channels.add(channel)
    return Receive(
        channel=channel,
        variable=variable(build, fields),
        correlation=fields.get("match"),
        **header.node(),
    )


def reply(build: StepBuilder, fields: Fields, header: StepHeader) -> Activity:
    channel, node = fields.get("reply", ""), fields.node_of("reply")
    if channel and node is not None:
        build.reader.replies.append((channel, node.place))
    return Reply(channel=channel, value=fields.get("value"), fault=fields.get("fault", ""), **header.node())


def invoke(build: StepBuilder, fields: Fields, header: StepHeader) -> Activity:
    return Invoke(
        partner=fields.get("invoke", ""),
        operation=fields.get("operation", ""),
        value=fields.get("value"),
        variable=variable(build, fields),
        **header.node(),
    )


def variable(build: StepBuilder, fields: Fields) -> str:
    name: str = fields.get("as", "")
    if name:
        build.reader.assigned(name)
    return name


def exit_case(_: StepBuilder, fields: Fields, header: StepHeader) -> Activity:
    fields.get("exit")
    return Exit(**header.node())


def empty(_: StepBuilder, fields: Fields, header: StepHeader) -> Activity:
    fields.get("empty")
    return Empty(**header.node())
