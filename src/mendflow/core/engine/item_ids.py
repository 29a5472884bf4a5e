"""How an item is named: after its activity, with the path of the iterations that it is in."""

from mendflow.core.model.ids import ItemId


def item_id(name: str, path: str) -> ItemId:
    return ItemId(f"{name}[{path}]" if path else name)


def path_of(outer: str, index: int) -> str:
    return f"{outer},{index}" if outer else str(index)
