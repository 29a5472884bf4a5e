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

from mendflow.core.data.set_specs import cycle_flaw, rule_flaws, set_flaws
from mendflow.core.model.data_sets import DataSetSpec, FolderWatch, Gathering
from mendflow.core.model.errors import BadFile, BadFlow, InvalidRequest
from mendflow.formats.files import settings_text
from mendflow.formats.settings import missing_settings, parse_setting
from mendflow.formats.spelling import nearest_word
from mendflow.formats.yaml.document import (
    ListNode,
    MapEntry,
    MapNode,
    ScalarNode,
    YamlNode,
    describe,
    parse,
    setting_data,
)
from mendflow.formats.yaml.flow_file import in_order
from mendflow.formats.yaml.reader import YamlReader

_PARTS = ("data_sets", "watches")
_OF_SET = ("gatherings", "after")
_EXPECTED = "it has `data_sets:` or `watches:`"


class DataSetFile(NamedTuple):
    """The content of a file."""

    sets: list[DataSetSpec]
    watches: list[FolderWatch]


def load_data_set_file(path: Path) -> DataSetFile:
    """Raises BadFile with every problem and its place."""
    return read_data_set_file(settings_text(path), str(path))


def read_data_set_file(text: str, source: str = "sets") -> DataSetFile:
    reader = YamlReader(source, text, Path())
    try:
        root, problems = parse(text, source, _EXPECTED)
        reader.include(problems)
        found = _DataSetFileParser(reader).read(root)
    except BadFlow as error:
        raise BadFile(problems=error.problems) from None
    if reader.problems:
        raise BadFile(problems=in_order(reader.problems, source))
    return found


class _DataSetFileParser:
    """Parses one file. Problems are recorded with their place, and the rest is read."""

    def __init__(self, reader: YamlReader) -> None:
        self.reader = reader

    def read(self, root: YamlNode) -> DataSetFile:
        whole = self._map(root, "the file", _PARTS)
        sets = self._map(whole["data_sets"].value, "data_sets") if "data_sets" in whole else {}
        watches = self._map(whole["watches"].value, "watches") if "watches" in whole else {}
        wishes = [self._wish(name, entry) for name, entry in sets.items()]
        after = {wish.name: wish.after for wish in wishes}
        for wish in wishes:
            if wish.name not in wish.after and (flaw := cycle_flaw(wish.name, after)):
                self.reader.problem(sets[wish.name].key, flaw)
        made = [self._made(FolderWatch, name, entry, f"watch {name}") for name, entry in watches.items()]
        return DataSetFile(wishes, [watch for watch in made if watch is not None])

    def _wish(self, name: str, entry: MapEntry) -> DataSetSpec:
        where = f"data set {name}"
        found = self._map(entry.value, where, _OF_SET)
        rules = self._map(found["gatherings"].value, f"gatherings of {where}") if "gatherings" in found else {}
        wish = DataSetSpec(
            name=name,
            gatherings=tuple(rule for each, given in rules.items() if (rule := self._rule(name, each, given))),
            after=self._names(found["after"].value) if "after" in found else (),
        )
        for flaw in set_flaws(wish):
            self.reader.problem(entry.key, flaw)
        return wish

    def _rule(self, data_set: str, name: str, entry: MapEntry) -> Gathering | None:
        rule = self._made(Gathering, name, entry, f"gathering {name} of data set {data_set}")
        if rule is None:
            return None
        assert isinstance(rule, Gathering)
        for flaw in rule_flaws(data_set, rule):
            self.reader.problem(entry.key, flaw)
        return rule

    def _names(self, node: YamlNode) -> tuple[str, ...]:
        parts = node.parts if isinstance(node, ListNode) else [node]
        for part in parts:
            if not isinstance(part, ScalarNode) or part.value is None:
                self.reader.problem(part, f"`after` has the names of data sets, not {describe(part)}")
        return tuple(part.written or str(part.value) for part in parts if isinstance(part, ScalarNode))

    def _made(self, kind: Any, name: str, entry: MapEntry, where: str) -> Any:
        """The parsed entry, or None if it is invalid."""
        before, given = len(self.reader.problems), {"name": name}
        for word, each in self._map(entry.value, where).items():
            try:
                made = parse_setting(word, setting_data(each.value), kind)
            except InvalidRequest as invalid:
                self.reader.problem(each.key, f"{where}: {invalid.message}")
            else:
                given.update([made])
        if len(self.reader.problems) == before:
            for missing in missing_settings(kind, given):
                self.reader.problem(entry.key, f"{where} needs `{missing}`")
        return kind(**{**given, "name": name}) if len(self.reader.problems) == before else None

    def _map(self, node: YamlNode, where: str, known: tuple[str, ...] = ()) -> dict[str, MapEntry]:
        if isinstance(node, ScalarNode) and node.value is None:
            return {}
        if not isinstance(node, MapNode):
            self.reader.problem(node, f"{where} has names and values, not {describe(node)}")
            return {}
        for word, entry in node.entries.items() if known else ():
            if word not in known:
                message = f"{where} has no {word!r}; known here: {', '.join(known)}"
                self.reader.problem(entry.key, message, nearest_word(word, known))
        return node.entries
