"""The schemas of a process as files in one folder; every location in them refers to a file there."""

import re
from typing import Final

from mendflow.core.model.xml import SchemaText
from mendflow.formats.bpel.source_files import UnreachableFile, resolve_location
from mendflow.formats.bpel.writing.tags import HEAD

LOCATION: Final = re.compile(r"""(\sschemaLocation\s*=\s*)("[^"]*"|'[^']*')""")


def schema_files(schemas: tuple[SchemaText, ...]) -> dict[str, str]:
    """Texts by file names, in the order of the schemas."""
    names = {schema.location: f"schema{number}.xsd" for number, schema in enumerate(schemas, 1)}
    return {names[schema.location]: HEAD + _with_locations(schema, names) + "\n" for schema in schemas}


def _with_locations(schema: SchemaText, names: dict[str, str]) -> str:
    base = schema.location.partition("#")[0]

    def other(found: re.Match[str]) -> str:
        try:
            place = resolve_location(found[2][1:-1], base)
        except UnreachableFile:
            return found[0]  # it leads into the network, where nothing is fetched
        return f'{found[1]}"{names.get(place, found[2][1:-1])}"'

    return LOCATION.sub(other, schema.text)
