"""A history: the journal of a case as it was once written, and what followed from each event at that time.

One line an event, as JSON: the event itself, how many orders of each kind followed, and a digest of those orders. The
last line says how the case stood in the end. Nothing of the engine's inner state is in it, so that the engine may keep
its books in another way, as long as the same events lead to the same orders."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from mendflow.core.engine import Case, evolve, outstanding_orders
from mendflow.core.engine.messages import Event, ItemDone, ItemEnded, ListenerAdded, Order

FOLDER = Path(__file__).parent
SUFFIX = ".history.jsonl"

Line = dict[str, Any]
_TOLD_WITH_ELEMENT = ("item-skipped", "item-failed")


def paths() -> list[Path]:
    return sorted(FOLDER.glob(f"*{SUFFIX}"))


def write(path: Path, journal: Iterable[Event]) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in told(journal)))


def journal_of(path: Path) -> list[Event]:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [msgspec.convert(line["event"], Event) for line in lines[:-1]]


def told(journal: Iterable[Event]) -> list[Line]:
    """Replay the journal, and tell what followed."""
    case = Case.blank()
    lines = [{"event": msgspec.to_builtins(event), **summary(evolve(case, event))} for event in journal]
    return [*lines, {"status": case.status, "outputs": msgspec.to_builtins(case.outputs), **summary(in_order(case))}]


def in_order(case: Case) -> list[Order]:
    """What is owed, whatever order the engine's books give it in."""
    return sorted(outstanding_orders(case), key=msgspec.json.encode)


def summary(orders: Sequence[Order]) -> Line:
    """What came later and only tells people something is left out: nothing follows from it."""
    plain = msgspec.to_builtins(
        [order for order in orders if not isinstance(order, (ItemDone, ItemEnded, ListenerAdded))]
    )
    for order in plain:
        if order["type"] in _TOLD_WITH_ELEMENT:
            order.pop("element", None)
    text = json.dumps(plain, sort_keys=True)
    return {
        "orders": dict(Counter(order["type"] for order in plain)),
        "digest": hashlib.sha256(text.encode()).hexdigest()[:16],
    }
