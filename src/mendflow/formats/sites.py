"""Site files: the settings of a site in YAML, with times and sizes as people write them."""

from pathlib import Path
from typing import Any

from mendflow.core.model.errors import BadFile, BadFlow, InvalidRequest
from mendflow.core.model.sites import Site, site_flaw
from mendflow.formats.files import settings_text
from mendflow.formats.settings import missing_settings, nested_kind, parse_setting
from mendflow.formats.yaml.document import MapNode, ScalarNode, YamlNode, describe, parse, plain_data
from mendflow.formats.yaml.flow_file import in_order
from mendflow.formats.yaml.reader import YamlReader

_EXPECTED = "a site has a `name:`"


def load_site(path: Path) -> Site:
    """The site that a file describes. Raises BadFile with every problem and its place."""
    return read_site(settings_text(path), str(path))


def read_site(text: str, source: str = "site") -> Site:
    reading = YamlReader(source, text, Path())
    try:
        root, problems = parse(text, source, _EXPECTED)
        reading.include(problems)
        site = _build(reading, root, Site, "a site")
        if site is not None and (wrong := site_flaw(site)):
            reading.problem(root, wrong)
    except BadFlow as error:
        raise BadFile(problems=error.problems) from None
    if site is None or reading.problems:
        raise BadFile(problems=in_order(reading.problems, source))
    assert isinstance(site, Site)
    return site


def _build(reading: YamlReader, node: YamlNode, kind: Any, where: str) -> Any:
    """The parsed node, or None if it is invalid: the problem is recorded with its place."""
    before, given = len(reading.problems), {}
    for word, entry in _entries(reading, node, where).items():
        if (part := nested_kind(kind, word)) is not None:
            given[word] = _build(reading, entry.value, part, f"`{word}` of {where}")
            continue
        try:
            given.update([parse_setting(word, plain_data(entry.value), kind)])
        except InvalidRequest as invalid:
            reading.problem(entry.key, f"{where}: {invalid.message}")
    if len(reading.problems) == before:
        for missing in missing_settings(kind, given):
            reading.problem(node, f"{where} needs `{missing}`")
    return kind(**given) if len(reading.problems) == before else None


def _entries(reading: YamlReader, node: YamlNode, where: str) -> dict[str, Any]:
    if isinstance(node, MapNode):
        return node.entries
    if not isinstance(node, ScalarNode) or node.value is not None:
        reading.problem(node, f"{where} has names and values, such as `name: cluster`, not {describe(node)}")
    return {}
