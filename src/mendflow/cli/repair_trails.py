"""Prints a repair: what was done, with what result, and why. With its trail it also says which rules were evaluated on
which values."""

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Final

from rich.text import Text

from mendflow.cli.printing import STYLES, say
from mendflow.cli.rule_trees import shown_name
from mendflow.core.model.faults import INFRASTRUCTURE_CATEGORIES, Category
from mendflow.core.model.repair import TOLD, Conclusion, ExceptionType
from mendflow.core.model.repair_views import DecisionView, RetryState, TrailStep
from mendflow.core.model.rules import ALL_TASKS, rule_text
from mendflow.core.model.values import Value
from mendflow.core.recovery.undo_sentences import undone_sentences
from mendflow.pages.formatting import count_text, duration_text, one_line, short_time_text

REPAIRS_SHOWN = 10
STEPS_SHOWN = 8
VALUE_CHARS = 60
REASON_CHARS = 300
GIVEN_UP = "given up"
FAILED_AGAIN = "failed again"
ONLY_TOLD = "a person was told (see mendflow alerts --severity info)"


def show_repairs(repairs: Sequence[DecisionView], subject: str = "", *, trail: bool = False) -> None:
    """`subject` is what was asked about: by it the trail can be asked for."""
    if not repairs:
        return
    what = "repairs" if any(each.exlet for each in repairs) else "no repair"
    say(f"{what}:" if len(repairs) == 1 else f"{what}, the newest failure first ({len(repairs):,}):")
    later: set[tuple[str, str]] = set()
    for decision in repairs[:REPAIRS_SHOWN]:
        about = (str(decision.case), str(decision.item or ""))
        _show(decision, is_last=about not in later, trail=trail)
        later.add(about)
    if len(repairs) > REPAIRS_SHOWN:
        say(f"  and {len(repairs) - REPAIRS_SHOWN:,} more: mendflow history {repairs[0].case}")
    if subject and not trail and any(each.trail for each in repairs[:REPAIRS_SHOWN]):
        say(f"mendflow why --trail {shlex.quote(subject)} shows how the rules were evaluated")


def _show(decision: DecisionView, *, is_last: bool, trail: bool) -> None:
    raised = f"{decision.trigger!r} was raised" if decision.trigger else decision.note
    what = decision.fault.message if decision.fault else raised
    about = f" {decision.shown}" if decision.item else ""
    say(
        Text.assemble(
            f"  {short_time_text(decision.at)}{about} {_happened(decision)}",
            (f"  {one_line(what, 200)}" if what else "", "dim"),
        )
    )
    if trail:
        _show_trail(decision)
    for trial in decision.trials:
        say(f"    {trial_text(trial)}")
    say(_outcome(decision, is_last=is_last))
    if trail:
        say(Text(f"    decision {decision.id}", style="dim"))
    elif decision.rule is not None:
        say(f"    because: {_because(decision)}")
        shows = f"mendflow rules show {shlex.quote(decision.rules)} --rule {decision.rule}"
        say(Text(f"    {rule_text(decision.rules, decision.rule)}: {shows}", style="dim"))


def _because(decision: DecisionView) -> str:
    """The reason of the rule that decided, in its author's words; if he left none, its condition with the values."""
    if decision.reason:
        return one_line(decision.reason, REASON_CHARS)
    decided = next((step for step in decision.trail if step.rule == decision.rule), None)
    values = f" ({_values(decided)})" if decided is not None and decided.values else ""
    return f"{one_line(decision.condition, 200)}{values}"


def _show_trail(decision: DecisionView) -> None:
    if decision.rules:
        tree = "all tasks" if decision.tree == ALL_TASKS else decision.tree or "the case"
        say(f"    rules {shown_name(decision.rules)} version {decision.version}, tree of {tree}:")
    steps = decision.trail[-STEPS_SHOWN:]
    if len(steps) < len(decision.trail):
        say(f"      {count_text(len(decision.trail) - len(steps), 'rule')} before, which did not decide")
    for step in steps:
        say(_step(step, decides=step.rule == decision.rule and step.held))
    if decision.others:
        where = f"mendflow rules show {shlex.quote(decision.rules)}"
        say(f"      {count_text(decision.others, 'more rule')} on the way, which did not hold: {where}")


def trial_text(trial: Conclusion) -> str:
    return f"on trial, {rule_text(trial.rules, trial.rule)} would do {trial.exlet}"


def _step(step: TrailStep, *, decides: bool) -> Text:
    line = Text(f"      rule {step.rule} ")
    line.append("held" if step.held else "did not hold", style="yellow" if decides else "dim")
    line.append(f": {one_line(step.condition, 200)}" if step.condition else "")
    if step.values:
        line.append(f"  ({_values(step)})", style="dim")
    if step.error:
        line.append(f"  {one_line(step.error, 200)}", style="red")
    return line


def _values(step: TrailStep) -> str:
    return one_line(", ".join(f"{name} = {_short(value)}" for name, value in step.values.items()), 300)


def _happened(decision: DecisionView) -> str:
    """The exception in a word: rules call a failure `abort`."""
    return "failed" if decision.type is ExceptionType.ABORT else decision.type.value


_RETRIES: Final[Mapping[RetryState, str]] = {
    "spent": ", and the built-in rules leave it alone, as its `retries` are used up",
    "none": ", and the built-in rules leave it alone, as its flow says `retries: 0`",
}
_MORE: Final = {Category.MEMORY: "more memory", Category.TIME: "more time"}
"""What the built-in rules give a job that had too little."""


def unhandled_text(decision: DecisionView) -> str:
    """What is done about an exception that no rule fits, and how one is added."""
    fits = "no rule fits this failure" if decision.type is ExceptionType.ABORT else "no rule fits this"
    if decision.retries == "left":
        lost = decision.fault is not None and decision.fault.category in INFRASTRUCTURE_CATEGORIES
        return f"{fits}; {'another pilot tries it again' if lost else 'it is tried again, as its `retries` say'}"
    spent = _RETRIES.get(decision.retries, "")
    if spent and decision.fault is not None and (more := _MORE.get(decision.fault.category)):
        spent += f" (else they would have given it {more})"
    if decision.state == "waiting":
        return f"{fits}{spent}; it waits for a person: mendflow mend {decision.case} --exlet EXLET"
    if not decision.group or decision.type is not ExceptionType.ABORT:
        return f"{fits}{spent}"
    add = f"mendflow rules add --from {decision.group} --if CONDITION --exlet EXLET"
    return f"{fits}{spent}; mendflow failures show {decision.group} offers conditions, and {add} adds one"


def result_word(decision: DecisionView, *, is_last: bool = True) -> str:
    """What a repair came to. One that made a job fail has given it up, unless another repair followed: then the job was
    tried again and failed again."""
    if decision.result == "failed":
        return GIVEN_UP if is_last else FAILED_AGAIN
    if decision.result == TOLD:
        return ONLY_TOLD
    return decision.result or decision.state


def _outcome(decision: DecisionView, *, is_last: bool) -> Text:
    if not decision.exlet:
        return Text(f"    {unhandled_text(decision)}")
    took = f" in {duration_text(decision.ended_at - decision.at)}" if decision.ended_at > decision.at else ""
    word = result_word(decision, is_last=is_last)
    line = Text(f"    did {decision.exlet}")
    line.append(f", ordered by {decision.ordered_by}," if decision.ordered_by else "")
    line.append(f" as case {decision.exlet_case}" if decision.exlet_case else "")
    line.append(": ")
    line.append(word, style=STYLES.get({"recovered": "mended", "done": "completed"}.get(word, word), ""))
    line.append(took)
    for sentence in undone_sentences([decision]):
        line.append(f"; {one_line(sentence.partition(' (by ')[0], 200)}")
    if decision.note:
        line.append(f"; {one_line(decision.note, 200)}", style="dim")
    if decision.replaced_by:
        line.append(f"; rejected, {decision.replaced_by} took its place")
    return line


def _short(value: Value) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return one_line(text, VALUE_CHARS)
