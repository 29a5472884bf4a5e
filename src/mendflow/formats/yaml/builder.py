"""Builds activities from the tree of a flow file. One key determines the kind of a step: `run`, `choose`, `scope`.

Problems are recorded and replaced by a placeholder, so that one pass finds all."""

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

import msgspec

from mendflow.core.model.expr import Expr
from mendflow.core.model.flow import Activity, Catch, Empty, Flow, Rethrow, Scope, Sequence
from mendflow.formats.hints import hint_for, with_hint
from mendflow.formats.loops import UNDOABLE_SUFFIX, WATCHED_SUFFIX
from mendflow.formats.spelling import nearest_word, our_word_for, same_word, suggestion_for
from mendflow.formats.yaml import flow_keys
from mendflow.formats.yaml.command_hints import script_hint
from mendflow.formats.yaml.document import ListNode, MapEntry, MapNode, ScalarNode, SourceSpan, YamlNode, describe
from mendflow.formats.yaml.fields import Fields, Key, Table
from mendflow.formats.yaml.job_hints import KIND_HINTS, STEP_HINTS
from mendflow.formats.yaml.reader import YamlReader
from mendflow.formats.yaml.references import rename_job_in
from mendflow.formats.yaml.shapes import NameShape, PresenceShape

LOOPS_WITH_BODY: Final = ("while", "until")
NAME: Final = NameShape()
BESIDE_HINTS: Final = {
    **dict.fromkeys(("while", "until"), "a loop with a condition has what it repeats under `do:`"),
    "parallel": "how many iterations run at a time is said inside the loop: `for-each: {x: [...], max-parallel: 4}`",
    "compensate": "how a completed job is undone is `compensation: COMMAND`",
    "wait": "a wait is a step of its own; before a retry it is `retries: {times: 3, wait: 5 s}`",
    "wait-until": "a wait is a step of its own",
    "call": "another flow is a job of its own",
    "user-task": "a person's work is a job of its own, which this one `needs`",
    "set": "variables that a command sees are `env: {NAME: value}`",
}
"""For keys that make a step of their own, where they stand beside a command."""

WORDS_OF_FAILURE: Final = ("finish", "stop", "continue", "ignore", "retry")


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
            likely = f"`[{node.value}]`" if isinstance(node, ScalarNode) and node.value is not None else ""
            self.reader.problem(node, f"a list of steps is expected here, not {describe(node)}", likely)
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
            node = self.from_word(node, node.value)
        elif isinstance(node, MapNode):
            node = self.unfolded(node)
        if not isinstance(node, MapNode):
            self.reader.problem(
                node, f"a step is expected here: a command, or a map such as `run: ...`; not {describe(node)}"
            )
            return Empty(name=name)
        kind = self.kind(node)
        if kind is None:
            self.judge_values(node, also)
            return Empty(name=name)
        key, own = self.kinds[kind]
        fields = Fields(self.reader, node, {**flow_keys.COMMON, **also, kind: key, **own})
        self.refuse_strangers(fields, kind)
        self.name(name, node.place)
        header = StepHeader(name=name, prefix=name, when=fields.get("if"))
        if "for-each" in fields:
            return self._makers["for-each"](self, fields, header)
        return self.make(kind, fields, header)

    def from_word(self, node: ScalarNode, text: str) -> MapNode:
        """A text is a command, or in an exlet a primitive that needs no settings."""
        if text in self.kinds and text not in flow_keys.KINDS and isinstance(self.kinds[text][0].shape, PresenceShape):
            return MapNode(node.place, {text: MapEntry(node, ScalarNode(node.place, None))})
        return MapNode(node.place, {"run": MapEntry(ScalarNode(node.place, "run"), node)})

    def unfolded(self, node: MapNode) -> MapNode:
        """A step with all its settings beside each other: those that stand inside a primitive, as in `{re-submit:
        {wait: 5 s}}`, and what a job needs, as in `resources: {memory: 2 GB}`."""
        entries: dict[str, MapEntry] = {}
        for name, entry in node.entries.items():
            own = self.kinds.get(name) if name not in flow_keys.KINDS else None
            is_primitive = own is not None and isinstance(own[0].shape, PresenceShape)
            if not isinstance(entry.value, MapNode) or not (is_primitive or name == "resources"):
                entries.setdefault(name, entry)
                continue
            if is_primitive:
                entries[name] = MapEntry(entry.key, ScalarNode(entry.key.place, None))
            for inner, setting in entry.value.entries.items():
                if inner in node.entries:
                    self.reader.problem(setting.key, f"`{inner}` stands beside `{name}` already")
                entries.setdefault(inner, setting)
        return MapNode(node.place, entries)

    def make(self, kind: str, fields: Fields, header: StepHeader) -> Activity:
        if "on-failure" in fields and "on-failure" not in self.kinds[kind][1]:
            return self.watched(kind, fields, header)
        return self.make_undoable(kind, fields, header)

    def watched(self, kind: str, fields: Fields, header: StepHeader) -> Activity:
        """A step that says what to do when it has failed is a scope with a handler that throws the fault again."""
        node = fields.node_of("on-failure")
        assert node is not None
        shown = header.label or header.name
        if isinstance(node, ScalarNode) and node.value in WORDS_OF_FAILURE:
            told = (
                f"here stands what to do when `{shown}` has failed, a command or steps; `{node.value}` is a word for "
            )
            self.reader.problem(node, f"{told}`on-failure` of the flow, of `jobs`, `parallel` and `for-each`")
        inner = StepHeader(name=header.name, prefix=header.prefix, label=header.label)
        body = self.make_undoable(kind, fields, inner)
        with self.reader.area("fault"), self.reader.inside("catch"):
            does = self.body(node, header.part("on-failure"))
        handler = Sequence(name=header.part("failed"), body=(does, Rethrow(name=header.part("rethrow"))))
        name = f"{header.name}{WATCHED_SUFFIX}"
        return Scope(name=name, label=shown, when=header.when, body=body, catches=(Catch(body=handler),))

    def make_undoable(self, kind: str, fields: Fields, header: StepHeader) -> Activity:
        if "compensation" in fields:
            return self.undoable(kind, fields, header)
        return self._makers[kind](self, fields, header)

    def undoable(self, kind: str, fields: Fields, header: StepHeader) -> Activity:
        """A step with `undo` is a scope with a handler. The step's condition is the scope's, so that a skipped step has
        nothing to undo."""
        node = fields.node_of("compensation")
        assert node is not None
        shown = header.label or header.name
        body = self._makers[kind](self, fields, StepHeader(name=header.name, prefix=header.prefix, label=header.label))
        with self.reader.inside("undo"), self.reader.alias(shown):
            undo = self.body(node, header.part("compensation"))
        if shown != header.name:
            undo = rename_job_in(undo, shown, header.name)
        return Scope(
            name=f"{header.name}{UNDOABLE_SUFFIX}", label=shown, when=header.when, body=body, compensation=undo
        )

    def kind(self, node: MapNode) -> str | None:
        """The key that determines the kind of the step. There must be exactly one."""
        named = [name for name in node.entries if name in self.kinds]
        # A key that determines a kind may also belong to another one, as `do` does to `while`.
        found = [name for name in named if not any(name in self.kinds[other][1] for other in named if other != name)]
        if len(found) == 1:
            return found[0]
        if not found:
            self.refuse_kindless(node)
        else:
            both = " and ".join(f"`{name}`" for name in found)
            hint = next((BESIDE_HINTS[name] for name in found if name in BESIDE_HINTS and "run" in found), "")
            message = f"a step does one thing; this has {both}" + (f"; {hint}" if hint else "")
            self.reader.problem(node.entries[found[1]].key, message)
        return None

    def refuse_kindless(self, node: MapNode) -> None:
        """Nothing says what the step does. If a word of another tool does, the other keys are judged too."""
        usual = "`run`, `python`, `user-task`, `call`, `steps`, `choose`, ..."
        message = f"nothing says what this step does; give it one of {usual}"
        meant = {name: ours for name in node.entries if (ours := our_word_for(name)) in self.kinds}
        if meant:
            name, ours = next(iter(meant.items()))
            file_hint = script_hint(node.entries[name].value) if ours == "run" else ""
            likely = "" if file_hint else f"`{ours}`"
            self.reader.problem(node.entries[name].key, f"{message}; {file_hint}" if file_hint else message, likely)
            for other, entry in node.entries.items():
                if other not in meant and (hint := hint_for(other, STEP_HINTS)):
                    self.reader.problem(entry.key, f"a `{ours}` step has no key `{other}`; {hint}")
            return
        _, hint = hinted_key(node)
        likely = "" if hint else self.likely_kind(node)[1]
        self.reader.problem(node, f"{message}; {hint}" if hint else message, likely)

    def likely_kind(self, node: MapNode) -> tuple[str, str]:
        """The key that was probably meant to say what the step does, and the word for it."""
        job_keys = self.kinds["run"][1] if "run" in self.kinds else {}
        others = [name for name in node.entries if name not in job_keys and not nearest_word(name, job_keys)]
        return next(((name, word) for name in others if (word := nearest_word(name, self.kinds))), ("", ""))

    def judge_values(self, node: MapNode, also: Table) -> None:
        """Say what else is wrong with a step of which nothing says what it does: it is most likely a command."""
        table = {**flow_keys.COMMON, **also, **self.kinds["run"][1]} if "run" in self.kinds else {}
        fields = Fields(self.reader, node, table)
        meant = [name for name in node.entries if our_word_for(name) in self.kinds]
        told = {name for name in node.entries if name in meant or hint_for(name, STEP_HINTS)} if meant else set()
        told |= {hinted_key(node)[0] or self.likely_kind(node)[0]}
        for name, entry in node.entries.items():
            if name in table and name not in self.kinds and name not in told:
                fields.get(name)
            elif name not in self.kinds and name not in told:
                self.refuse_stranger(entry.key, name, "run", table)

    def refuse_stranger(self, key: ScalarNode, name: str, kind: str, table: Table) -> None:
        message = f"a `{kind}` step has no key `{name}`"
        if hint_for(name, STEP_HINTS) and not same_word(name, table):
            self.reader.problem(key, with_hint(message, name, STEP_HINTS))
        else:
            self.reader.problem(key, message, suggestion_for(name, table))

    def refuse_strangers(self, fields: Fields, kind: str) -> None:
        for name, entry in fields.node.entries.items():
            if name in fields.table or (name in self.kinds and name != "do"):
                continue
            if name in flow_keys.FOR_EACH and "for-each" in fields:
                message = f"`{name}` belongs inside `for-each:`, as in `for-each: {{sample: [...], {name}: ...}}`"
            elif name in flow_keys.IN_JOBS:
                message = f"`{name}` is for the jobs of a `jobs:` map; steps run in the order they stand in"
            elif name == "name" and name not in fields.table:
                message = "a job of a `jobs:` map has its name before the colon; take `name` out"
            elif homes := [other for other, (_, own) in self.kinds.items() if name in own]:
                message = f"`{name}` goes with {' or '.join(f'`{home}`' for home in homes[:4])}, not with `{kind}`"
                message = with_hint(message, name, STEP_HINTS) if kind == "run" else message
            else:
                self.refuse_stranger(entry.key, name, kind, fields.table)
                continue
            self.reader.problem(entry.key, message)


def hinted_key(node: MapNode) -> tuple[str, str]:
    """The first key of a step without a kind that is a word of another tool, and how that is said here."""
    for table in (KIND_HINTS, STEP_HINTS):
        for name in node.entries:
            if hint := hint_for(name, table):
                return name, hint
    return "", ""
