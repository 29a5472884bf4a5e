"""Every key of an exlet: the steps of a flow file, and the primitives. Parser and JSON Schema use these.

The keys of a primitive become its settings, under the names that `core.model` and the services use: memory is
`resources.memory_bytes`, a wait is `wait_ms`."""

from typing import Any, Final

from mendflow.core.model.repair import Primitive
from mendflow.formats.spelling import nearest_word
from mendflow.formats.yaml import flow_keys
from mendflow.formats.yaml.document import ScalarNode, YamlNode, describe
from mendflow.formats.yaml.fields import Key, Table
from mendflow.formats.yaml.reader import YamlReader
from mendflow.formats.yaml.shapes import (
    ChoiceShape,
    DataShape,
    DeferredShape,
    FlagShape,
    MapOf,
    MeasureShape,
    NameShape,
    PresenceShape,
    Schema,
    TextShape,
    expression_in,
)


class OptionShape(PresenceShape):
    """One of a few words; nothing, or true, stands for the first."""

    def __init__(self, *words: str) -> None:
        self.words = words
        self.expected = f"one of {', '.join(words)} (or nothing, for {words[0]})"

    def schema(self) -> Schema:
        return {"enum": [*self.words, True, None]}

    def read(self, reader: YamlReader, node: YamlNode) -> Any:
        value = node.value if isinstance(node, ScalarNode) else "a list or a map"
        if value is None or value is True:
            return self.words[0]
        if value in self.words:
            return value
        likely = nearest_word(value, self.words) if isinstance(value, str) else ""
        reader.problem(node, f"{self.expected} is expected here, not {describe(node)}", likely)
        return None


class LevelShape(PresenceShape):
    """The number of a level of waiting, or an expression; nothing, or true, is the level after the last one."""

    expected = "the number of a level, from 1 on, or nothing,"

    def schema(self) -> Schema:
        level: Schema = {"type": "integer", "minimum": 1}
        return {"anyOf": [level, {"enum": [True, None]}, {"type": "string", "pattern": r"\$\{\{"}]}

    def read(self, reader: YamlReader, node: YamlNode) -> Any:
        value = node.value if isinstance(node, ScalarNode) else ""
        if value is None or value is True:
            return 0
        if isinstance(value, int) and value >= 1:
            return value
        if isinstance(node, ScalarNode) and isinstance(value, str) and "${{" in value:
            return expression_in(reader, node, value, "template")
        reader.problem(node, f"{self.expected} is expected here, not {describe(node)}")
        return None


ITEM: Final[Table] = {"item": Key(TextShape("the id of an item"), "Another item of the case than the one at hand.")}
TARGET: Final = OptionShape("item", "case", "all-cases", "ancestors")
DEFAULT_TARGETS: Final = "The item unless given; `case`, `all-cases` of the same flow, or `ancestors` only."
DURATION_KEYS: Final[Table] = {"wait": Key(MeasureShape("duration", "template"), "Wait this long before.")}
SOURCE_KEYS: Final[Table] = {
    "sources": Key(
        MapOf(TextShape("a path or URL")),
        "Other files for inputs, by their paths in the job's folder: a path on the server, `lfn:/NAME`, a URL.",
    ),
}
CHANGES: Final[Table] = {
    **flow_keys.RESOURCES,
    "memory": Key(
        MeasureShape("size", "template", positive=True), "How much memory the job gets; learned, it gets more."
    ),
    "time": Key(MeasureShape("duration", "template", positive=True), "How long the job may take."),
    **SOURCE_KEYS,
    **DURATION_KEYS,
    "env": Key(flow_keys.ENVIRONMENT, "Environment variables that the job gets in addition."),
    "container": Key(TextShape("an image"), "The image that the job runs in from now on; `none` for no container."),
    "avoid": Key(DataShape(), "Hosts that the job avoids: a list, or an expression that gives one."),
    "domain": Key(TextShape("the name of a domain"), "The domain that the job goes to."),
}
INTO_KEY: Final = Key(ChoiceShape("case", "item"), "Where the values go; into the case unless given.")

PRIMITIVES: Final[dict[str, tuple[Key, Table]]] = {
    Primitive.SUSPEND: (Key(TARGET, f"Suspend until it is continued. {DEFAULT_TARGETS}"), ITEM),
    Primitive.CONTINUE: (Key(TARGET, f"Release what this exlet has suspended. {DEFAULT_TARGETS}"), ITEM),
    Primitive.REMOVE: (Key(TARGET, f"End it as cancelled; nothing more runs on its path. {DEFAULT_TARGETS}"), ITEM),
    Primitive.RESTART: (
        Key(PresenceShape(), "Run the item again, with its data as of its start."),
        {**ITEM, "with": Key(MapOf(DataShape()), "Only the values that changed.")},
    ),
    Primitive.COMPLETE: (
        Key(PresenceShape(), "End the item as completed; what comes next runs."),
        {**ITEM, "outputs": Key(DataShape(), "The outputs to give it.")},
    ),
    Primitive.FAIL: (
        Key(PresenceShape(), "End the item as failed; the flow handles that, or the case fails."),
        {
            **ITEM,
            "fault": Key(TextShape("the name of a fault"), "The fault's name; that of the fault at hand unless given."),
            "message": Key(TextShape("a sentence"), "What went wrong."),
            "throw": Key(
                FlagShape(), "Throw the fault in the flow (default); with false what comes next runs all the same."
            ),
        },
    ),
    Primitive.WRITE: (
        Key(MapOf(DataShape()), "Put values into the case: its inputs, its variables, or new variables."),
        {**ITEM, "into": INTO_KEY},
    ),
    Primitive.RESTAGE: (
        Key(
            OptionShape("same", "parameters", "replica", "target"),
            "Stage the job's files again: the same way (default), with other parameters, from another replica, or "
            "to another target.",
        ),
        {
            **ITEM,
            **SOURCE_KEYS,
            **DURATION_KEYS,
            "parameters": Key(MapOf(DataShape()), "Other parameters of the transfer."),
            "site": flow_keys.RESOURCES["site"],
            "to": Key(
                DataShape(),
                "Where the file goes that could not be published: a URL, with a slash at its end that of a folder; or "
                "a map from outputs to URLs.",
            ),
            "on": Key(TextShape("the name of a storage element"), "The storage element that files are published on."),
        },
    ),
    Primitive.RESUBMIT: (
        Key(PresenceShape(), "Submit the job again, changed as the other keys say."),
        {**ITEM, **CHANGES},
    ),
    Primitive.REPOLL: (Key(PresenceShape(), "Ask again for the state of the job."), {**ITEM, **DURATION_KEYS}),
    Primitive.REREGISTER: (
        Key(PresenceShape(), "Subscribe again to the end of the job."),
        {**ITEM, **DURATION_KEYS},
    ),
    Primitive.RETRY_LATER: (
        Key(LevelShape(), "Wait in a level, then submit the job again; in the next level unless one is given."),
        {
            **ITEM,
            **CHANGES,
            "mode": Key(ChoiceShape("recoverable", "express"), "Whether it waits on disk (default) or in memory only."),
        },
    ),
    Primitive.UNWIND: (Key(PresenceShape(), "Undo what the case has completed, the last first."), {}),
    Primitive.NOTIFY: (
        Key(TextShape("a sentence", filled=True), "Tell the administrator."),
        {
            "to": Key(TextShape("a name"), "Whom to notify, if not the administrator."),
            "data": Key(DataShape(), "Data to include."),
        },
    ),
}
WORKLET: Final[Table] = {
    "call": Key(
        TextShape("a flow file beside this one, or the name of a flow,", template=False), "The worklet.", required=True
    ),
    "with": Key(MapOf(DataShape()), "Its inputs."),
    "name": Key(NameShape(), "What its results are called: `jobs.NAME`. The worklet's own name unless given."),
}
COMPENSATE: Final[tuple[Key, Table]] = (
    Key(
        DeferredShape("a worklet, or a list of worklets that run at once,", "worklets"),
        "Run worklets: flows that do something about it. The next step waits for all of them.",
    ),
    {
        "with": Key(MapOf(DataShape()), "The inputs of the worklets."),
        "write": Key(
            DeferredShape("`all`, or a map of values,", "written"),
            "What is written back when they have ended: all their outputs by name, or these values.",
        ),
        "into": INTO_KEY,
        **ITEM,
    },
)
KINDS: Final[dict[str, tuple[Key, Table]]] = {**flow_keys.KINDS, **PRIMITIVES, "compensate": COMPENSATE}
"""Each kind of step of an exlet. In a flow, `compensate` undoes scopes; in an exlet it runs worklets."""

EXLET: Final[Table] = {
    "name": Key(NameShape(), "The exlet's name, where it has a file of its own; the file's name unless given."),
    "description": Key(TextShape(template=False, prose=True), "What it is good for."),
    "env": flow_keys.FLOW["env"],
    "shell": flow_keys.FLOW["shell"],
    "defaults": flow_keys.FLOW["defaults"],
    "variables": Key(MapOf(DataShape(), flow_keys.VARIABLE), "Variables of the exlet and their first values."),
    "steps": Key(flow_keys.STEPS, "What it does, one after another.", required=True),
}
assert set(PRIMITIVES) == set(Primitive), "every primitive has a word"
