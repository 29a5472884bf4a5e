"""What somebody may look at, as a condition of the store's own search: so a page is full, and a count is right."""

from mendflow.core.model.principals import Sight
from mendflow.stores.contract import FieldCondition


def in_sight(sight: Sight, field: str = "project") -> list[FieldCondition]:
    return [FieldCondition(field, sight.stored_values, "in")] if sight.projects is not None else []
