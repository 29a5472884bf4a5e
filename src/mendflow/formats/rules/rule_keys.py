"""Every key of a rule file: its values and its purpose."""

from typing import Final

from mendflow.core.model.repair import CASE_LEVEL, ExceptionType
from mendflow.formats.yaml.fields import Key, Table
from mendflow.formats.yaml.shapes import DeferredShape, FlagShape, ListOf, MapOf, NumberShape, TextShape

MOMENT: Final = DeferredShape("a moment (such as 2030-01-31T08:00:00Z)", "moment")
CONTEXT: Final = DeferredShape("a context: a map, or its JSON as a text,", "context")
KEPT: Final = Key(CONTEXT, "What a foreign file said that has no word here; it is written out again.")
ROWS: Final = DeferredShape("a list of rules", "rules")

RULE: Final[Table] = {
    "if": Key(
        DeferredShape('a condition (such as fault.type == "oom")', "condition"), "When the rule holds.", required=True
    ),
    "do": Key(
        DeferredShape("the name of an exlet, or a list of steps", "exlet"),
        "What it concludes: an exlet by its name, or its steps; for `selection` the name of a flow. Without it "
        "the rule concludes nothing.",
    ),
    "except": Key(ROWS, "Refinements: asked only where this rule holds; one that holds decides in its place."),
    "note": Key(TextShape("a text", template=False, prose=True), "Why there is such a rule."),
    "author": Key(TextShape("a name", template=False), "Who made it."),
    "at": Key(MOMENT, "When it was made."),
    "passive": Key(FlagShape(), "On trial: what it would have concluded is recorded, and nothing done."),
    "cornerstone": Key(CONTEXT, "The case that it was made for."),
    "id": Key(NumberShape(whole=True), "Its number in the tree; counted from 1 in the order of the file unless given."),
    "kept": KEPT,
}
LINKED: Final[Table] = {
    **{name: key for name, key in RULE.items() if name != "except"},
    "id": Key(NumberShape(whole=True), "Its number in the tree.", required=True),
    "then": Key(NumberShape(whole=True), "The rule that is asked next where this one holds."),
    "else": Key(NumberShape(whole=True), "The rule that is asked next where it does not."),
}
FLAT: Final[Table] = {
    "root": Key(NumberShape(whole=True), "The rule that is asked first.", required=True),
    "rules": Key(ROWS, "The rules of the tree, linked by their numbers.", required=True),
}
ABOUT: Final[dict[ExceptionType, str]] = {
    ExceptionType.CASE_PRE: "A case is about to begin.",
    ExceptionType.CASE_POST: "A case is about to complete.",
    ExceptionType.CASE_EXTERNAL: "Somebody says that something happened to a case: `trigger`.",
    ExceptionType.ITEM_PRE: "An item is about to go out.",
    ExceptionType.ITEM_POST: "An item is about to complete.",
    ExceptionType.ITEM_EXTERNAL: "Somebody says that something happened to an item: `trigger`.",
    ExceptionType.TIMEOUT: "An item has reached its deadline, or one in parallel with it has.",
    ExceptionType.ABORT: "An attempt at a job failed.",
    ExceptionType.UNAVAILABLE: "Nobody can take an item, ever or for too long.",
    ExceptionType.VIOLATION: "A running item breaks a constraint.",
    ExceptionType.SELECTION: "Which flow serves a call that leaves the choice to the rules.",
}
FILE: Final[Table] = {
    "rules": Key(
        TextShape("the name of a flow, or `*`,", template=False), "The flow whose rules these are; `*` for all."
    ),
    "note": Key(TextShape("a text", template=False, prose=True), "What this version is about."),
    "author": Key(TextShape("a name", template=False), "Who made this version."),
    "at": Key(MOMENT, "When it was made."),
    "version": Key(NumberShape(whole=True), "The number of the version that was written out."),
    "flow-versions": Key(
        ListOf(TextShape("a version", template=False)),
        "The versions of the flow that the rules hold for, as `case.version` names them; all unless given.",
    ),
    "renamed": Key(
        MapOf(TextShape("the new name of a task", template=False)),
        "Tasks that the flow calls otherwise now: the new names by the old ones, under which the rules stand.",
    ),
    **{
        str(type): Key(
            DeferredShape("a list of rules" if type in CASE_LEVEL else "a map of lists of rules by task", "tree"), about
        )
        for type, about in ABOUT.items()
    },
    "exlets": Key(DeferredShape("a map of exlets by name", "exlets"), "Exlets that rules conclude by their names."),
    "kept": KEPT,
}
EXLET_MODEL: Final = "model"
"""The one key of an exlet that no steps can say: its flow as JSON."""
