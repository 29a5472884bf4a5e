"""Draws rule trees.

A rule on the true side of another is below it and indented: it is an exception to it. A rule on the false side has the
same indentation: it is evaluated instead. The last one that holds decides, so read downwards."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

import msgspec
from rich.text import Text

from mendflow.cli.printing import say, table_width
from mendflow.core.model.errors import NotFound
from mendflow.core.model.flow import Call, Flow, PrimitiveStep
from mendflow.core.model.repair import CASE_LEVEL, Primitive
from mendflow.core.model.repair_views import RuleSetView
from mendflow.core.model.rules import ALL_TASKS, DEFAULT_RULES, Rule, RuleSet, RuleTree, rule_text
from mendflow.core.rules import is_out_of_use
from mendflow.pages.boxes import inner_activities
from mendflow.pages.formatting import count_text, one_line, short_time_text

CONDITION_CHARS = 400
NOTE_CHARS = 300
TARGETED_STEPS = (Primitive.SUSPEND, Primitive.CONTINUE, Primitive.REMOVE)
SETTINGS_CHARS = 100
WHOLE_CHARS = 4000
DEPTH_MAX = 12
"""Deeper rules are not indented further: a screen is only so wide."""


def show_set(view: RuleSetView) -> None:
    rules = view.rules
    assert rules is not None, "the server returns the rule set in full"
    by = f" by {view.author}" if view.author else ""
    at = f" at {short_time_text(view.at)}" if view.at else ""
    of = f" of project {view.project}" if view.name != DEFAULT_RULES else ""
    say(Text.assemble((shown_name(view.name), "bold"), f" version {view.version}{of}{by}{at}"))
    if view.note:
        say(f"  {one_line(view.note, 300)}")
    counted = view.decided, view.tried
    for title, key, tree in trees_of(rules):
        say()
        say(Text(title, style="bold"))
        decided, tried = ({id: counts.get(f"{key}/{id}", 0) for id in tree.rules} for counts in counted)
        for line in draw_tree(tree, decided, table_width(), tried):
            say(line)
    if rules.exlets:
        say()
        say(Text("exlets", style="bold"))
    for name, exlet in sorted(rules.exlets.items()):
        say(Text.assemble(f"  {name}: ", (one_line(steps_text(exlet), CONDITION_CHARS), "dim")))


def show_rule(view: RuleSetView, id: int) -> None:
    """One rule in full: its author's words, its condition, those that it is an exception to, and its exlet."""
    rules = view.rules
    assert rules is not None, "the server returns the rule set in full"
    found = [(title, key, tree) for title, key, tree in trees_of(rules) if id in tree.rules]
    if not found:
        raise NotFound(f"{shown_name(view.name)} has no rule {id}; `mendflow rules show` draws those there are")
    for title, key, tree in found:
        rule = tree.rules[id]
        say(Text.assemble((rule_text(view.name, id), "bold"), f", for {title.partition(':')[0]}"))
        say(f"  {one_line(rule.note, WHOLE_CHARS)}" if rule.note else "  its author left no note")
        say(f"  if          {one_line(rule.condition, WHOLE_CHARS)}")
        for above in exceptions_to(tree, id):
            say(f"  and         {one_line(tree.rules[above].condition, WHOLE_CHARS)}  (rule {above})")
        exlet = rules.exlets.get(rule.exlet)
        steps = f": {one_line(steps_text(exlet), WHOLE_CHARS)}" if exlet is not None else ""
        say(f"  then        {rule.exlet or 'nothing'}{steps}")
        if decided := view.decided.get(f"{key}/{id}", 0):
            say(f"  decided     {count_text(decided, 'time')}")


def exceptions_to(tree: RuleTree, id: int) -> list[int]:
    """The rules that must hold for this one to be evaluated, the nearest first."""
    above: dict[int, tuple[int, bool]] = {}
    for rule in tree.rules.values():
        for below, is_true in ((rule.on_true, True), (rule.on_false, False)):
            if below is not None:
                above[below] = rule.id, is_true
    found = list[int]()
    while id in above:
        id, is_true = above[id]
        found += [id] if is_true else []
    return found


def steps_text(exlet: Flow) -> str:
    """suspend case, call HireSupportAct, continue case."""
    lines, pending = list[str](), [exlet.body]
    while pending:
        step = pending.pop()
        below = list(inner_activities(step))
        pending += reversed(below)
        if isinstance(step, PrimitiveStep):
            about = f" {step.item}" if step.item else f" {step.target}" if step.do in TARGETED_STEPS else ""
            settings = (
                f" {one_line(msgspec.json.encode(step.settings).decode(), SETTINGS_CHARS)}" if step.settings else ""
            )
            lines.append(f"{step.do.value}{about}{settings}")
        elif isinstance(step, Call):
            lines.append(f"call {step.flow or 'what the rules choose'}")
        elif not below:
            lines.append(f"{type(step).__struct_config__.tag} {step.name}")
    return ", ".join(lines) or "nothing"


def shown_name(name: str) -> str:
    return f"{DEFAULT_RULES} (default rules)" if name == DEFAULT_RULES else name


def trees_of(rules: RuleSet) -> Iterator[tuple[str, str, RuleTree]]:
    """Each tree with its title, and the key of its counts."""
    for type, trees in rules.trees.items():
        for task, tree in trees.items():
            about = "the case" if type in CASE_LEVEL else "all tasks" if task == ALL_TASKS else task
            yield f"{type.value}, {about}: {count_text(len(tree.rules), 'rule')}", f"{type.value}/{task}", tree


def draw_tree(
    tree: RuleTree, decided: dict[int, int], width: int, tried: Mapping[int, int] = MappingProxyType({})
) -> Iterator[Text]:
    """Line by line, without recursion: a chain of alternatives may have thousands of rules. What does not fit beside a
    condition goes below it."""
    pending: list[tuple[int, int, str]] = [(tree.root, 0, "if")] if tree.rules else []
    wide = len(str(max(tree.rules, default=0)))
    while pending:
        id, depth, word = pending.pop()
        rule, indent = tree.rules[id], "    " * min(depth, DEPTH_MAX)
        line = Text.assemble(
            f"  {id:>{wide}}  {indent}", (f"{word} ", "dim"), one_line(rule.condition, CONDITION_CHARS)
        )
        if is_out_of_use(rule):
            line = Text(f"  {id:>{wide}}  {indent}{word} {rule.condition}  out of use, was", style="dim")
        for part in _rule_note(rule, decided.get(id, 0), tried.get(id, 0)):
            if line.cell_len + part.cell_len > width:
                yield line
                line = Text(f"  {' ' * wide}  {indent}   ")
            line.append_text(part)
        line.truncate(width, overflow="ellipsis")
        yield line
        if rule.on_false is not None:
            pending.append((rule.on_false, depth, "else if"))
        if rule.on_true is not None:
            pending.append((rule.on_true, depth + 1, "except if"))


def _rule_note(rule: Rule, decided: int, tried: int) -> Iterator[Text]:
    """What a rule concludes, how often it did, and its author's comment."""
    note = Text(f"  →  {rule.exlet or 'nothing'}", style="" if rule.exlet else "dim")
    if rule.passive:
        note.append("  on trial", style="yellow")
    if tried:
        note.append(f"  would have decided {tried:,}", style="yellow")
    if decided:
        note.append(f"  decided {decided:,}", style="green")
    if rule.author:
        note.append(f"  by {rule.author}", style="dim")
    yield note
    if rule.note:
        yield Text(f"  # {one_line(rule.note, NOTE_CHARS)}", style="dim")
