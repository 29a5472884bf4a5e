"""Site files: the settings of a site in YAML, with times and sizes as people write them."""

from pathlib import Path

import msgspec

from mendflow.core.model.problems import Invalid
from mendflow.core.model.sites import Site, flaw
from mendflow.formats.files import flow_text
from mendflow.formats.measured import measured, settings_in


def load_site(path: Path) -> Site:
    """The site that a file describes. Raises Invalid, or BadFlow if the file cannot be read."""
    return read_site(flow_text(path, str(path)), str(path))


def read_site(text: str, source: str = "site") -> Site:
    found = settings_in(text, source)
    if not isinstance(found, dict):
        raise Invalid(f"{source}: a site file has names and values, such as `name: cluster`")
    try:
        site = msgspec.convert(measured(found, Site, source), Site)
    except msgspec.ValidationError as error:
        raise Invalid(f"{source}: {error}") from error
    if wrong := flaw(site):
        raise Invalid(f"{source}: {wrong}")
    return site
