"""Items that were ended by force: whatever became of their job or task, they count as completed, or as failed.

What an item had asked for is taken back when it is ended by force, so its job is cancelled, or had failed before. A
document of the item's own, under the serial of what was taken back, says what the item counts as."""

from mendflow.core.engine import LiveItem, find_item
from mendflow.core.engine.messages import Command, ForceComplete, ForceFail
from mendflow.core.model.ids import Instant
from mendflow.core.model.views import ItemState
from mendflow.services.case_book import ItemDocument, LiveCase


def about(live: LiveCase, command: Command) -> LiveItem | None:
    """The item that a command is about to end by force."""
    if not isinstance(command, (ForceComplete, ForceFail)):
        return None
    found = find_item(live.case, command.item)
    return found if found is not None and found.serial else None


def ended(live: LiveCase, item: LiveItem, command: Command, now: Instant) -> ItemDocument | None:
    """What is to be noted of it, if it has ended: a suspended case keeps the command for later."""
    assert isinstance(command, (ForceComplete, ForceFail))
    after = find_item(live.case, item.item)
    if after is not None and after.serial == item.serial:
        return None
    state: ItemState = "completed" if isinstance(command, ForceComplete) else "failed"
    told = isinstance(command, ForceFail) and command.proceed  # the engine has told of it, and it was counted
    live.tally.move(item.name, item.kind, live.take_back(item.serial), "" if told else state)
    word = "force-completed" if isinstance(command, ForceComplete) else "force-failed"
    return ItemDocument(
        case=live.id,
        item=item.item,
        name=item.name,
        kind=item.kind,
        serial=item.serial,
        state=state,
        created_at=now,
        ended_at=now,
        fault=command.fault if isinstance(command, ForceFail) else None,
        outputs=command.outputs if isinstance(command, ForceComplete) else None,
        reason=f"{word} by {command.by.rpartition('/')[0]}" if command.by else word,
    )
