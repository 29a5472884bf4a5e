"""What a case was given, and why it waits or failed, in a few words: what tells a case from others of its flow."""

import json
from typing import Final

from mendflow.core.model.values import Value
from mendflow.core.model.views import CaseView
from mendflow.lazy import lazy_pattern
from mendflow.pages.formatting import count_text, one_line

INPUTS_SHOWN: Final = 3
VALUE_CHARS_MAX: Final = 24
_PATH: Final = lazy_pattern(r"\S*(/[^/\s]+)")


def given_text(view: CaseView) -> str:
    """`table=night02.csv, parts=3`: files first, then what fits into a word. Large inputs, which a list leaves out,
    count."""
    given = [(name, value) for name, value in view.inputs.items() if value is not None and value != ""]
    given.sort(key=lambda each: _rank(each[1]))
    shown = [f"{name}={_short(value)}" for name, value in given[:INPUTS_SHOWN]]
    more = len(given) - len(shown) + sum(name.startswith("inputs.") for name in view.left_out)
    return ", ".join([*shown, *([f"{more} more"] if more else [])])


def why_text(view: CaseView) -> str:
    """What failed, or what it waits for; empty if it goes on by itself."""
    if view.fault is not None:
        return one_line(view.fault.message, 200)
    if view.held:
        return f"{count_text(len(view.held), 'item')} failed and {_verb(len(view.held))} for a person"
    if view.tasks:
        more = f", and {view.tasks_open - 1} more" if view.tasks_open > 1 else ""
        return f"waits for a person: {one_line(view.tasks[0].title or view.tasks[0].item, 80)}{more}"
    if view.holds:
        return f"suspended by {view.holds[0].by or 'somebody'}"
    waiting = sum(count.waiting for count in view.counts)
    if view.status == "running" and waiting and not any(count.running for count in view.counts):
        return f"nothing runs: {waiting:,} {_verb(waiting)}"
    return ""


def _verb(number: int) -> str:
    return "waits" if number == 1 else "wait"


def _file_name(value: Value) -> str:
    """Of a file that the server keeps; of a path its end, with a sign that more stands before it."""
    if isinstance(value, dict) and isinstance(digest := value.get("$file"), str):
        return str(value.get("name") or digest[:8])
    if isinstance(value, str) and "://" not in value and (found := _PATH.fullmatch(value)) is not None:
        return value if found[1] == value else f"…{found[1]}"
    return ""


def _rank(value: Value) -> int:
    if _file_name(value) or (isinstance(value, list) and any(map(_file_name, value))):
        return 0
    return 2 if isinstance(value, (dict, list)) else 1


def _short(value: Value) -> str:
    if name := _file_name(value):
        return one_line(name, VALUE_CHARS_MAX)
    if isinstance(value, list):
        return _short(value[0]) if len(value) == 1 else count_text(len(value), "value")
    return one_line(value if isinstance(value, str) else json.dumps(value), VALUE_CHARS_MAX)
