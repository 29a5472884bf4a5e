"""Files that say which data sets there are, what follows from their files, and which storage elements are watched.

```yaml
data_sets:
  raw:
    gatherings:
      repack: {flow: repack, count: 1}
  merged: {after: [raw]}
watches:
  incoming: {element: disk, prefix: incoming, data_set: raw, every: 5 s}
```"""

from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from mendflow.core.data.set_wishes import check_wish
from mendflow.core.model.data_sets import DataSetWish, Gathering, Watch
from mendflow.core.model.problems import Invalid
from mendflow.formats.files import flow_text
from mendflow.formats.measured import measured, settings_in
from mendflow.formats.spelling import nearest

_PARTS = ("data_sets", "watches")
_OF_SET = ("gatherings", "after")


class SetsFile(NamedTuple):
    """What a file describes, each set after those that it comes after."""

    sets: list[DataSetWish]
    watches: list[Watch]


def load_sets(path: Path) -> SetsFile:
    """Raises Invalid, or BadFlow if the file cannot be read."""
    return read_sets(flow_text(path, str(path)), str(path))


def read_sets(text: str, source: str = "sets") -> SetsFile:
    whole = _map(settings_in(text, source), source, "the file")
    _demand(whole, _PARTS, source, "the file")
    sets = _map(whole.get("data_sets"), source, "data_sets")
    watches = _map(whole.get("watches"), source, "watches")
    return SetsFile(
        [_wish(str(name), _map(each, source, f"data set {name}"), source) for name, each in sets.items()],
        [_made(Watch, str(name), _map(each, source, f"watch {name}"), source) for name, each in watches.items()],
    )


def _wish(name: str, found: dict[Any, Any], source: str) -> DataSetWish:
    where = f"data set {name}"
    _demand(found, _OF_SET, source, where)
    rules = _map(found.get("gatherings"), source, f"gatherings of {where}")
    after = found.get("after", [])
    wish = DataSetWish(
        name=name,
        gatherings=tuple(
            _made(Gathering, str(each), _map(rule, source, f"gathering {each}"), source) for each, rule in rules.items()
        ),
        after=tuple(map(str, after if isinstance(after, list) else [after])),
    )
    try:
        check_wish(wish)
    except Invalid as invalid:
        raise Invalid(f"{source}: {invalid.message}") from invalid
    return wish


def _made(kind: Any, name: str, found: dict[Any, Any], source: str) -> Any:
    try:
        return msgspec.convert({**measured(found, kind, f"{source}: {name}"), "name": name}, kind)
    except msgspec.ValidationError as error:
        raise Invalid(f"{source}: {name}: {error}") from error


def _map(found: Any, source: str, where: str) -> dict[Any, Any]:
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise Invalid(f"{source}: {where} has names and values, not {found!r:.80}")
    return found


def _demand(found: dict[Any, Any], known: tuple[str, ...], source: str, where: str) -> None:
    for word in found:
        if word not in known:
            meant = nearest(str(word), known)
            hint = f" (did you mean {meant}?)" if meant else ""
            raise Invalid(f"{source}: {where} has no {word!r}; known here: {', '.join(known)}{hint}")
