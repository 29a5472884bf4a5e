"""Site files: the settings of a site in YAML, with times and sizes as people write them."""

from pathlib import Path
from typing import Any

from mendflow.core.model.problems import BadFile, BadFlow, Invalid
from mendflow.core.model.sites import Site, flaw
from mendflow.formats.files import settings_text
from mendflow.formats.measured import lacking, part_of, setting
from mendflow.formats.yaml.document import Entries, Node, Scalar, describe, parse, plain
from mendflow.formats.yaml.flow_file import in_order
from mendflow.formats.yaml.reading import Reading

_HOLDS = "a site has a `name:`"


def load_site(path: Path) -> Site:
    """The site that a file describes. Raises BadFile with every problem and its place."""
    return read_site(settings_text(path), str(path))


def read_site(text: str, source: str = "site") -> Site:
    reading = Reading(source, text, Path())
    try:
        root, problems = parse(text, source, _HOLDS)
        reading.include(problems)
        site = _made(reading, root, Site, "a site")
        if site is not None and (wrong := flaw(site)):
            reading.problem(root, wrong)
    except BadFlow as error:
        raise BadFile(problems=error.problems) from None
    if site is None or reading.problems:
        raise BadFile(problems=in_order(reading.problems, source))
    assert isinstance(site, Site)
    return site


def _made(reading: Reading, node: Node, kind: Any, where: str) -> Any:
    """The kind of thing that a node describes, or None if something in it is wrong: that is noted with its place."""
    before, given = len(reading.problems), {}
    for word, entry in _entries(reading, node, where).items():
        if (part := part_of(kind, word)) is not None:
            given[word] = _made(reading, entry.value, part, f"`{word}` of {where}")
            continue
        try:
            given.update([setting(word, plain(entry.value), kind)])
        except Invalid as invalid:
            reading.problem(entry.key, f"{where}: {invalid.message}")
    if len(reading.problems) == before:
        for missing in lacking(kind, given):
            reading.problem(node, f"{where} needs `{missing}`")
    return kind(**given) if len(reading.problems) == before else None


def _entries(reading: Reading, node: Node, where: str) -> dict[str, Any]:
    if isinstance(node, Entries):
        return node.entries
    if not isinstance(node, Scalar) or node.value is not None:
        reading.problem(node, f"{where} has names and values, such as `name: cluster`, not {describe(node)}")
    return {}
