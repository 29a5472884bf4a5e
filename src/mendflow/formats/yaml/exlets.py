"""Exlets: flows whose steps are primitives, and whatever else a flow can do.

An exlet has one input, `context`: what is known of the case that it mends. Its body stands in a scope whose variables
are those roots of the context that its expressions ask for, so that a step can say `${{ job.memory_bytes * 2 }}`. One
that the context does not have is null.

What a primitive is told becomes the settings of its `Mend`:

    suspend, continue, remove   none; target is item, case, all-cases or ancestors
    restart                     with: what of its data is other this time
    force-complete              outputs
    force-fail                  fault, message, throw
    write                       values; target is case or item
    re-submit, retry-later      resources (by their names in Resources), env, avoid_hosts, sources, domain, wait_ms, as
                                Change has them; retry-later also level, 0 for the next, and mode
    re-stage                    way (same, parameters, replica, target), sources, parameters, resources.site, wait_ms
    re-poll, re-register        wait_ms
    notify                      message, to, data

Only what was said is there. `compensate` is a call for each worklet, at once if there are several, and then a `write`
for what goes back."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from mendflow.core.model import flow as model
from mendflow.core.model.flow import Activity, Call, Empty, Flow, Input, Mend, Parallel, Scope, Template
from mendflow.core.model.ids import FlowName
from mendflow.core.model.mending import Primitive, Target
from mendflow.core.model.problems import BadFlow
from mendflow.core.rules import ROOTS
from mendflow.formats.files import flow_text
from mendflow.formats.names import NAME
from mendflow.formats.yaml import exlet_tables as words
from mendflow.formats.yaml import flow_file, leaves
from mendflow.formats.yaml.build import Build, Callables, Maker, Seat
from mendflow.formats.yaml.calls import FlowFiles
from mendflow.formats.yaml.document import Entries, Entry, Items, Node, Scalar, describe, parse
from mendflow.formats.yaml.fields import Fields, fields_of
from mendflow.formats.yaml.reading import Reading
from mendflow.formats.yaml.shapes import Data, MapOf

CONTEXT: Final = "context"
RESOURCES: Final = {
    "cpus": "cpus",
    "memory": "memory_bytes",
    "disk": "disk_bytes",
    "gpus": "gpus",
    "time": "wall_ms",
    "site": "site",
    "hosts": "hosts",
    "system": "system",
    "machine": "machine",
}
PLAIN: Final = {"env": "env", "avoid": "avoid_hosts", "sources": "sources", "domain": "domain", "wait": "wait_ms"}
VALUES: Final = MapOf(Data(), wants="`all`, or a map of values,")


def load_exlet(path: str | Path) -> Flow:
    """The exlet in a file of its own. Raises BadFlow with every problem and its place."""
    path = Path(path)
    return read_exlet(flow_text(path, str(path)), path)


def read_exlet(text: str, path: str | Path, roots: Iterable[str] = ROOTS) -> Flow:
    """The exlet in a text that stands, or would stand, at this path: a list of steps, or a map with `steps:`."""
    path = Path(path)
    root, problems = parse(text, str(path))
    reading = Reading(str(path), text, path.parent.resolve())
    reading.problems.extend(problems)
    flow = build_exlet(reading, root, flow_file.name_from(str(path)), FlowFiles(path.parent), roots)
    if reading.problems or flow is None:
        raise BadFlow(problems=flow_file.in_order(reading.problems, str(path)))
    return flow


def build_exlet(
    reading: Reading,
    node: Node,
    name: str,
    callables: Callables,
    roots: Iterable[str] = ROOTS,
) -> Flow | None:
    """The flow of an exlet, from its node in whatever file: a list of steps, one step, or a map with `steps:`. Whatever
    is wrong is told to the reading, with its place; the flow is None only where there is none at all. Each exlet has
    names of its own: two of them in one file do not see each other. `callables` finds the worklets that are files
    (`FlowFiles(folder)`), and `roots` are the names that the context may have."""
    inner = Reading(reading.file, reading.text, reading.folder)
    inner.problems = reading.problems
    inner.inputs = {CONTEXT: ""}
    known = frozenset(roots)
    for root in known:
        inner.assigned(root)
    build = Build(inner, MAKERS, callables, words.KINDS)
    fields = whole(inner, node)
    if fields is None:
        return None
    name = fields.get("name") or name
    build.env = fields.get("env", {})
    build.defaults = flow_file.defaults_of(inner, fields.node_of("defaults"))
    variables = fields.get("variables", {})
    for variable in variables:
        inner.assigned(variable)
    steps = fields.node_of("steps")
    body = build.in_order(steps, Seat(name="", prefix="")) if steps is not None else ()
    asked = {use.reference.name for use in inner.uses}
    flow = exlet_flow(
        name,
        body,
        variables={**context_of(asked & known), **variables},
        description=fields.get("description", ""),
        calls=tuple(build.called.values()),
        folder=str(reading.folder),
    )
    inner.judge_names(flow_file.activities_of(flow))
    return flow


def exlet_flow(name: str, steps: Sequence[Activity], *, variables: dict[str, Template], **more: Any) -> Flow:
    """The flow that these steps are when they mend a case. `context_of` gives the variables that come from there."""
    body = model.Sequence(name=f"{name}.steps", body=tuple(steps))
    return Flow(
        name=FlowName(name),
        exlet=True,
        inputs={CONTEXT: Input(type="map", required=True, description="what is known of the case that is mended")},
        body=Scope(name=f"{name}.exlet", variables=variables, body=body) if variables else body,
        **more,
    )


def context_of(roots: Iterable[str]) -> dict[str, Template]:
    """Variables for these roots of the context."""
    at = f"inputs.{CONTEXT}"
    return {root: f"${{{{ has({at}.{root}) ? {at}.{root} : null }}}}" for root in sorted(roots)}


def whole(reading: Reading, node: Node) -> Fields | None:
    """The keys of an exlet. A list is its steps, and a step by itself is a list of one."""
    is_map = isinstance(node, Entries)
    if isinstance(node, Entries) and "steps" not in node.entries and any(key in words.KINDS for key in node.entries):
        node = Items(node.place, [node])
    if isinstance(node, Items) or (isinstance(node, Scalar) and isinstance(node.value, str)):
        steps = node if isinstance(node, Items) else Items(node.place, [node])
        node = Entries(node.place, {"steps": Entry(Scalar(node.place, "steps"), steps)})
    if not isinstance(node, Entries):
        reading.problem(node, f"an exlet is a list of steps, or a map with `steps:`, not {describe(node)}")
        return None
    return fields_of(reading, node, words.EXLET, "an exlet") if is_map else Fields(reading, node, words.EXLET)


def targeted(do: Primitive) -> Maker:
    """For primitives whose word says what they are done to."""

    def make(build: Build, fields: Fields, seat: Seat) -> Activity:
        target: Target = fields.get(do, "item")
        if "item" in fields and target != "item":
            build.reading.problem(fields.node.entries["item"].key, f"`item` goes with `{do}: item`, not with {target}")
        return Mend(do=do, target=target, item=fields.get("item", ""), **seat.node())

    return make


def told(do: Primitive, settings: Callable[[Fields], dict[str, Any]]) -> Maker:
    """For primitives that take settings."""

    def make(_: Build, fields: Fields, seat: Seat) -> Activity:
        return Mend(do=do, item=fields.get("item", ""), settings=settings(fields), **seat.node())

    return make


def said(fields: Fields, names: Mapping[str, str]) -> dict[str, Any]:
    """What was said under these keys, by the names that the settings have."""
    found = {ours: fields.get(key) for key, ours in names.items() if key in fields}
    return {name: value for name, value in found.items() if value is not None}


def changes(fields: Fields) -> dict[str, Any]:
    resources = said(fields, RESOURCES)
    return {**({"resources": resources} if resources else {}), **said(fields, PLAIN)}


def marked(do: Primitive, **names: str) -> Maker:
    """For primitives that say something by being there, with these keys beside."""

    def settings(fields: Fields) -> dict[str, Any]:
        fields.get(do)
        return said(fields, names)

    return told(do, settings)


def resubmitted(fields: Fields) -> dict[str, Any]:
    fields.get(Primitive.RESUBMIT)
    return changes(fields)


def retried(fields: Fields) -> dict[str, Any]:
    level = fields.get(Primitive.RETRY_LATER, 0)
    return {"level": level, **said(fields, {"mode": "mode"}), **changes(fields)}


def restaged(fields: Fields) -> dict[str, Any]:
    way = fields.get(Primitive.RESTAGE, "same")
    resources = said(fields, {"site": "site"})
    rest = said(fields, {"sources": "sources", "parameters": "parameters", "wait": "wait_ms"})
    return {"way": way, **({"resources": resources} if resources else {}), **rest}


def notified(fields: Fields) -> dict[str, Any]:
    return {"message": fields.get(Primitive.NOTIFY, ""), **said(fields, {"to": "to", "data": "data"})}


def written(_: Build, fields: Fields, seat: Seat) -> Activity:
    return write_back(fields, fields.get(Primitive.WRITE, {}), seat.node())


def write_back(fields: Fields, values: Template, node: dict[str, Any]) -> Mend:
    target: Target = fields.get("into", "item" if "item" in fields else "case")
    return Mend(do=Primitive.WRITE, target=target, item=fields.get("item", ""), settings={"values": values}, **node)


def compensate(build: Build, fields: Fields, seat: Seat) -> Activity:
    """Worklets at once, and then what they give back."""
    calls = worklets(build, fields, seat)
    back = fields.node_of("write")
    if not calls:
        return Empty(**seat.node())
    together: Activity = calls[0]
    if len(calls) > 1:
        together = Parallel(name=f"{seat.name}.worklets", branches=tuple(calls), on_fault="finish")
    writes = writes_of(build, fields, seat, back, calls) if back is not None else []
    name = f"{seat.name}.compensate"
    return model.Sequence(name=name, body=(together, *writes), when=seat.when)


def worklets(build: Build, fields: Fields, seat: Seat) -> list[Call]:
    node = fields.node_of("compensate")
    assert node is not None
    parts = node.parts if isinstance(node, Items) else [node]
    if not parts:
        build.reading.problem(node, "`compensate` needs at least one worklet")
    made = [worklet(build, part, fields, seat, alone=len(parts) == 1) for part in parts]
    return [call for call in made if isinstance(call, Call)]


def worklet(build: Build, node: Node, fields: Fields, seat: Seat, *, alone: bool) -> Activity:
    """One worklet: its flow, or a map that says also what it is given and what its results are called. One that is
    alone in a step is called as the step is, if that has a name, or if another has the worklet's own."""
    if isinstance(node, Scalar):
        node = Entries(node.place, {"call": Entry(Scalar(node.place, "call"), node)})
    own = fields_of(build.reading, node, words.WORKLET, "a worklet")
    if own is None:
        return Empty(name=seat.part("worklet"))
    if "with" in fields and "with" not in own:
        entries = {**own.node.entries, "with": fields.node.entries["with"]}
        own = Fields(build.reading, Entries(own.node.place, entries), words.WORKLET)
    given, stem = own.get("name"), Path(own.get("call", "").partition(".py:")[0]).stem
    if alone and not given and ("name" in fields or not NAME.fullmatch(stem) or stem in build.named):
        return leaves.call(build, own, Seat(name=seat.name, prefix=seat.name))
    name = given or (stem if NAME.fullmatch(stem) else seat.part("worklet"))
    build.name(name, own.node.place)
    return leaves.call(build, own, Seat(name=name, prefix=name))


def writes_of(build: Build, fields: Fields, seat: Seat, back: Node, calls: Sequence[Call]) -> list[Activity]:
    if isinstance(back, Scalar) and back.value == "all":
        return [
            write_back(fields, f"${{{{ jobs.`{call.name}`.outputs }}}}", {"name": f"{seat.name}.write-{count}"})
            for count, call in enumerate(calls, 1)
        ]
    values = VALUES.read(build.reading, back)
    return [write_back(fields, values, {"name": f"{seat.name}.write"})] if values else []


MAKERS: Final[dict[str, Maker]] = {
    **flow_file.MAKERS,
    Primitive.SUSPEND: targeted(Primitive.SUSPEND),
    Primitive.CONTINUE: targeted(Primitive.CONTINUE),
    Primitive.REMOVE: targeted(Primitive.REMOVE),
    Primitive.RESTART: marked(Primitive.RESTART, **{"with": "with"}),
    Primitive.COMPLETE: marked(Primitive.COMPLETE, outputs="outputs"),
    Primitive.FAIL: marked(Primitive.FAIL, fault="fault", message="message", throw="throw"),
    Primitive.WRITE: written,
    Primitive.RESTAGE: told(Primitive.RESTAGE, restaged),
    Primitive.RESUBMIT: told(Primitive.RESUBMIT, resubmitted),
    Primitive.REPOLL: marked(Primitive.REPOLL, wait="wait_ms"),
    Primitive.REREGISTER: marked(Primitive.REREGISTER, wait="wait_ms"),
    Primitive.RETRY_LATER: told(Primitive.RETRY_LATER, retried),
    Primitive.UNWIND: marked(Primitive.UNWIND),
    Primitive.NOTIFY: told(Primitive.NOTIFY, notified),
    "compensate": compensate,
}
assert set(words.KINDS) | {"for-each"} == set(MAKERS), "every kind of step has a maker"
