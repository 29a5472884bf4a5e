"""An assign whose copies use style sheets. The engine runs none: it issues an order for each, one at a time.

Until a result is known, the copies are tried and undone; results stay with the item, so each try gets further, and the
last one makes all copies."""

from hashlib import sha256

import msgspec

from mendflow.core.engine.activities.basic import assign
from mendflow.core.engine.activities.items import ItemKind
from mendflow.core.engine.messages import RunStyleSheet
from mendflow.core.engine.run import Run
from mendflow.core.engine.state import InstanceEnd, TransformItem
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.values import Value

Params = tuple[tuple[str, Value], ...]


class MissingTransform(Exception):
    """The copies need a result that has not been requested yet."""

    def __init__(self, key: str, sheet: str, source: str, params: Params) -> None:
        super().__init__(key)
        self.key, self.sheet, self.source, self.params = key, sheet, source, params


class TransformKind(ItemKind[TransformItem]):
    makes = TransformItem

    def ask(self, run: Run, instance: TransformItem) -> None:
        def made(sheet: str, source: str, params: Params) -> Value:
            key = sha256(msgspec.json.encode((sheet, source, params), order="deterministic")).hexdigest()
            if key not in instance.made:
                raise MissingTransform(key, sheet, source, params)
            return instance.made[key]

        try:
            assign(run, instance, made)
        except MissingTransform as unknown:
            instance.pending = unknown.key
            instance.order = RunStyleSheet(
                serial=0, item=instance.item, sheet=unknown.sheet, source=unknown.source, params=unknown.params
            )
            super().ask(run, instance)
        else:
            run.end(instance, InstanceEnd.COMPLETED)

    def succeed(self, run: Run, instance: TransformItem, outcome: Outcome) -> None:
        made = outcome.outputs.get("result") if isinstance(outcome.outputs, dict) else None
        instance.made[instance.pending] = "" if made is None else made
        self.ask(run, instance)

    def phase(self, _instance: TransformItem, /) -> str:
        return "transforming"
