"""Builds activities from the tree of a flow file. One key determines the kind of a step: `run`, `choose`, `scope`.

Problems are recorded and replaced by a placeholder, so that one pass finds all."""

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

import msgspec

from mendflow.core.model.expr import Expr
from mendflow.core.model.flow import Activity, Empty, Flow, Scope, Sequence
from mendflow.formats.loops import UNDOABLE_SUFFIX
from mendflow.formats.spelling import suggestion_for
from mendflow.formats.yaml import flow_keys
from mendflow.formats.yaml.document import ListNode, MapEntry, MapNode, ScalarNode, SourceSpan, YamlNode, describe
from mendflow.formats.yaml.fields import Fields, Key, Table
from mendflow.formats.yaml.reader import YamlReader
from mendflow.formats.yaml.references import rename_job_in
from mendflow.formats.yaml.shapes import NameShape

LOOPS_WITH_BODY: Final = ("while", "until")
NAME: Final = NameShape()


class StepHeader(msgspec.Struct, frozen=True, kw_only=True):
    """The common part of a step: its name and display name, its condition, and the names of its parts."""

    name: str
    prefix: str
    label: str = ""
    when: Expr | None = None

    def node(self) -> dict[str, Any]:
        """The common fields of every activity."""
        return {"name": self.name, "label": self.label, "when": self.when}

    def part(self, called: str | int) -> str:
        return f"{self.prefix}.{called}" if self.prefix else f"step-{called}"


class FlowFinder(Protocol):
    """Finds the flows that a flow calls."""

    def find(self, reader: YamlReader, node: YamlNode, path: str) -> Flow | None: ...


StepFactory = Callable[["StepBuilder", Fields, StepHeader], Activity]
Kinds = Mapping[str, tuple[Key, Table]]


class StepBuilder:
    """`kinds` are the kinds of steps with their keys, and `makers` build them."""

    def __init__(
        self, reader: YamlReader, makers: dict[str, StepFactory], callables: FlowFinder, kinds: Kinds = flow_keys.KINDS
    ) -> None:
        self.reader = reader
        self.callables = callables
        self.kinds = kinds
        self.env: dict[str, str] = {}
        self.shell = ""
        self.defaults: dict[str, Any] = {}
        self.called: dict[str, Flow] = {}
        self.named: list[str] = []
        self._makers = makers

    def body(self, node: YamlNode, name: str) -> Activity:
        """A command, a list of steps, or a step in a map, which may have a name."""
        if isinstance(node, ListNode):
            return self.sequence(node, StepHeader(name=name, prefix=name))
        if isinstance(node, MapNode) and (entry := node.entries.get("name")):
            name = NAME.read(self.reader, entry.value) or name
        return self.step(node, name, flow_keys.IN_STEPS)

    def sequence(self, node: YamlNode, header: StepHeader) -> Activity:
        self.name(header.name, node.place)
        return Sequence(body=self.in_order(node, header), **header.node())

    def parts(self, node: YamlNode, header: StepHeader) -> tuple[Activity, ...]:
        if not isinstance(node, ListNode):
            self.reader.problem(node, f"a list of steps is expected here, not {describe(node)}")
            return ()
        if not node.parts:
            self.reader.problem(node, "a list of steps needs at least one step")
        return tuple(self.body(part, header.part(count)) for count, part in enumerate(node.parts, 1))

    def in_order(self, node: YamlNode, header: StepHeader) -> tuple[Activity, ...]:
        """Steps in sequence: each may use the results of those before it, not of later ones, unless in a loop."""
        started: dict[str, int] = {}
        uses, parts = len(self.reader.uses), []
        if not isinstance(node, ListNode) or not node.parts:
            return self.parts(node, header)
        for count, part in enumerate(node.parts, 1):
            named = len(self.named)
            first_use = len(self.reader.uses)
            parts.append(self.body(part, header.part(count)))
            started.update(dict.fromkeys(self.named[named:], first_use))
        if not self.reader.is_inside(*LOOPS_WITH_BODY):
            for place, use in enumerate(self.reader.uses[uses:], uses):
                name = use.reference.name.removeprefix("jobs.")
                if use.reference.name.startswith("jobs.") and place < started.get(name, 0):
                    self.reader.problem(use.place, f"`jobs.{name}` is used before it: that step comes later")
        return tuple(parts)

    def name(self, name: str, place: SourceSpan) -> None:
        self.reader.activity(name, place)
        self.named.append(name)

    def step(self, node: YamlNode, name: str, also: Table) -> Activity:
        """One step; `also` are the keys that are allowed because of its place."""
        if isinstance(node, ScalarNode) and isinstance(node.value, str):
            node = MapNode(node.place, {"run": MapEntry(ScalarNode(node.place, "run"), node)})
        if not isinstance(node, MapNode):
            self.reader.problem(
                node, f"a step is expected here: a command, or a map such as `run: ...`; not {describe(node)}"
            )
            return Empty(name=name)
        kind = self.kind(node)
        if kind is None:
            return Empty(name=name)
        key, own = self.kinds[kind]
        fields = Fields(self.reader, node, {**flow_keys.COMMON, **also, kind: key, **own})
        self.refuse_strangers(fields, kind)
        self.name(name, node.place)
        header = StepHeader(name=name, prefix=name, when=fields.get("if"))
        if "for-each" in fields:
            return self._makers["for-each"](self, fields, header)
        return self.make(kind, fields, header)

    def make(self, kind: str, fields: Fields, header: StepHeader) -> Activity:
        if "compensation" in fields:
            return self.undoable(kind, fields, header)
        return self._makers[kind](self, fields, header)

    def undoable(self, kind: str, fields: Fields, header: StepHeader) -> Activity:
        """A step with `undo` is a scope with a handler. The step's condition is the scope's, so that a skipped step has
        nothing to undo."""
        node = fields.node_of("compensation")
        assert node is not None
        shown_name = header.label or header.name
        body = self._makers[kind](self, fields, StepHeader(name=header.name, prefix=header.prefix, label=header.label))
        with self.reader.inside("undo"), self.reader.alias(shown_name):
            undo = self.body(node, header.part("compensation"))
        if shown_name != header.name:
            undo = rename_job_in(undo, shown_name, header.name)
        return Scope(
            name=f"{header.name}{UNDOABLE_SUFFIX}", label=shown_name, when=header.when, body=body, compensation=undo
        )

    def kind(self, node: MapNode) -> str | None:
        """The key that determines the kind of the step. There must be exactly one."""
        named = [name for name in node.entries if name in self.kinds]
        # A key that determines a kind may also belong to another one, as `do` does to `while`.
        found = [name for name in named if not any(name in self.kinds[other][1] for other in named if other != name)]
        if len(found) == 1:
            return found[0]
        if not found:
            likely = next((guess for name in node.entries if (guess := suggestion_for(name, self.kinds))), "")
            usual = "`run`, `python`, `user-task`, `call`, `steps`, `choose`, ..."
            self.reader.problem(node, f"nothing says what this step does; give it one of {usual}", likely)
        else:
            both = " and ".join(f"`{name}`" for name in found)
            self.reader.problem(node.entries[found[1]].key, f"a step does one thing; this has {both}")
        return None

    def refuse_strangers(self, fields: Fields, kind: str) -> None:
        for name, entry in fields.node.entries.items():
            if name in fields.table or (name in self.kinds and name != "do"):
                continue
            if name in flow_keys.FOR_EACH and "for-each" in fields:
                message = f"`{name}` belongs inside `for-each:`, beside `items:`"
            elif name in flow_keys.IN_JOBS:
                message = f"`{name}` is for the jobs of a `jobs:` map; steps run in the order they stand in"
            elif name == "name" and name not in fields.table:
                message = "a job of a `jobs:` map has its name before the colon; take `name` out"
            elif homes := [other for other, (_, own) in self.kinds.items() if name in own]:
                message = f"`{name}` goes with {' or '.join(f'`{home}`' for home in homes[:4])}, not with `{kind}`"
            else:
                self.reader.problem(
                    entry.key, f"a `{kind}` step has no key `{name}`", suggestion_for(name, fields.table)
                )
                continue
            self.reader.problem(entry.key, message)
