"""Site files: the settings of a site in YAML, with times and sizes as people write them."""

from pathlib import Path
from typing import Any

from mendflow.core.model.errors import BadFile, BadFlow, InvalidRequest
from mendflow.core.model.sites import Site, site_flaw
from mendflow.formats.files import settings_text
from mendflow.formats.settings import missing_settings, nested_kind, parse_setting
from mendflow.formats.yaml.document import MapNode, ScalarNode, YamlNode, describe, parse, setting_data
from mendflow.formats.yaml.flow_file import in_order
from mendflow.formats.yaml.reader import YamlReader

_EXPECTED = "a site has a `name:`"


def load_site(path: Path) -> Site:
    """The site that a file describes. Raises BadFile with every problem and its place."""
    return read_site(settings_text(path), str(path))


def read_site(text: str, source: str = "site") -> Site:
    reader = YamlReader(source, text, Path())
    try:
        root, problems = parse(text, source, _EXPECTED)
        reader.include(problems)
        site = _build(reader, root, Site, "a site")
        if site is not None and (wrong := site_flaw(site)):
            reader.problem(root, wrong)
    except BadFlow as error:
        raise BadFile(problems=error.problems) from None
    if site is None or reader.problems:
        raise BadFile(problems=in_order(reader.problems, source))
    assert isinstance(site, Site)
    return site


def _build(reader: YamlReader, node: YamlNode, kind: Any, where: str) -> Any:
    """The parsed node, or None if it is invalid: the problem is recorded with its place."""
    before, given = len(reader.problems), {}
    for word, entry in _entries(reader, node, where).items():
        if (part := nested_kind(kind, word)) is not None:
            given[word] = _build(reader, entry.value, part, f"`{word}` of {where}")
            continue
        try:
            given.update([parse_setting(word, setting_data(entry.value), kind)])
        except InvalidRequest as invalid:
            reader.problem(entry.key, f"{where}: {invalid.message}")
    if len(reader.problems) == before:
        for missing in missing_settings(kind, given):
            reader.problem(node, f"{where} needs `{missing}`")
    return kind(**given) if len(reader.problems) == before else None


def _entries(reader: YamlReader, node: YamlNode, where: str) -> dict[str, Any]:
    if isinstance(node, MapNode):
        return node.entries
    if not isinstance(node, ScalarNode) or node.value is not None:
        reader.problem(node, f"{where} has names and values, such as `name: cluster`, not {describe(node)}")
    return {}
