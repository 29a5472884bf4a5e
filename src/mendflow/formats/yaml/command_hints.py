"""Values of the flow in a command that are not written as expressions: the shell would get them as they stand, and the
command would do something else than what was meant."""

import re
from typing import Final

from mendflow.core.expressions import ExpressionError, template_parts
from mendflow.formats.yaml.reader import YamlReader

MEMBER: Final = r"(inputs\.[\w-]+|jobs\.[\w-]+\.(?:outputs|files|exit_code)[\w.\-]*)"
IN_OTHER_SIGNS: Final = (
    re.compile(r"(?<!\$)\{\{\s*" + MEMBER + r"\s*\}\}"),
    re.compile(r"\$\{\s*" + MEMBER + r"\s*\}"),
    re.compile(r"\$" + MEMBER),
    re.compile(r"(?<![$\w])\{" + MEMBER + r"\}"),
)
"""`{{ inputs.x }}`, `${ inputs.x }`, `$inputs.x` and `{inputs.x}`."""

WILDCARD: Final = re.compile(r"\{wildcards\.(\w+)\}")
OF_A_LOOP: Final = re.compile(r"(?<!\$)\{\{\s*(\w+)\s*\}\}")


def literal_value(command: str, reader: YamlReader) -> tuple[str, str] | None:
    """The first value that stands in the command in other signs, and how it is written here."""
    try:
        texts = [part.text for part in template_parts(command) if not part.is_expression]
    except ExpressionError:
        return None  # which is told of elsewhere
    for text in texts:
        for pattern in IN_OTHER_SIGNS:
            for found in pattern.finditer(text):
                family, _, name = found[1].partition(".")
                if family == "jobs" or name in reader.inputs:
                    return found[0], found[1]
        if wildcard := WILDCARD.search(text):
            return wildcard[0], wildcard[1]
        for found in OF_A_LOOP.finditer(text):
            if reader.sees(found[1]):
                return found[0], found[1]
    return None
