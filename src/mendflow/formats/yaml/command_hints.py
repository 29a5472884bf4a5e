"""Values of the flow in a command that are not written as expressions: the shell would get them as they stand, and the
command would do something else than what was meant."""

import re
from collections.abc import Container
from typing import Final

from mendflow.core.expressions import ExpressionError, template_parts
from mendflow.formats.yaml.document import ScalarNode, YamlNode
from mendflow.formats.yaml.reader import YamlReader
from mendflow.lazy import lazy_pattern

MEMBER: Final = r"(inputs\.[\w-]+|jobs\.[\w-]+\.(?:outputs|files|exit_code)[\w.\-]*)"
IN_OTHER_SIGNS: Final = (
    lazy_pattern(r"(?<!\$)\{\{\s*" + MEMBER + r"\s*\}\}"),
    lazy_pattern(r"\$\{\s*" + MEMBER + r"\s*\}"),
    lazy_pattern(r"\$" + MEMBER),
    lazy_pattern(r"(?<![$\w])\{" + MEMBER + r"\}"),
)
"""`{{ inputs.x }}`, `${ inputs.x }`, `$inputs.x` and `{inputs.x}`."""

WILDCARD: Final = lazy_pattern(r"\{wildcards\.(\w+)\}")
OF_A_LOOP: Final = lazy_pattern(r"(?<!\$)\{\{\s*(\w+)\s*\}\}")
QUOTED: Final = lazy_pattern(r"'[^']*'")
OF_THE_SHELL: Final = lazy_pattern(r"(?<![\\$])\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(?:[%#/^,][^}]*)?\})")
IN_BRACES: Final = lazy_pattern(r"(?<![$\w])\{([A-Za-z_]\w*)\}")
EMPTY_BRACES: Final = lazy_pattern(r"(?<![\w$=\\(){}])\{\}(?![\w{}])")
FILLS_BRACES: Final = lazy_pattern(r"\b(?:xargs|find|fd|fdfind|parallel|awk|jq|perl|git|curl)\b")
WRITTEN_OUT: Final = lazy_pattern(r"\b(?:echo|printf)\b[^;|&\n]*")
SETTING: Final = (
    r"(?:^|[\s;&|(`])(?:{0}\+?=|(?:for|select) +{0}\b"
    r"|(?:read|readarray|mapfile|declare|local|getopts|printf -v)\b[^;|&\n]*\b{0}\b)"
)
"""How a script gives a variable its value."""


STARTED_BY: Final = {"py": "python3", "R": "Rscript", "r": "Rscript", "sh": "bash", "jl": "julia", "pl": "perl"}


def script_hint(node: YamlNode) -> str:
    """How a file beside the flow is run, if that is what was given as a script."""
    text = node.value if isinstance(node, ScalarNode) and isinstance(node.value, str) else ""
    program = STARTED_BY.get(text.rpartition(".")[2], "")
    if not program or len(text.split()) != 1:
        return ""
    return f"a file beside the flow is run by `run: {program} {text}`, with `inputs: [{text}]`"


def shell_variable(command: str, reader: YamlReader, known: Container[str]) -> tuple[str, str] | None:
    """The first `$sample` or `{sample}` that means a variable of the flow, because the shell has none of that name. It
    has those that are `known` from its environment, and those that the script sets."""
    try:
        texts = [part.text for part in template_parts(command) if not part.is_expression]
    except ExpressionError:
        return None  # which is told of elsewhere
    script = QUOTED.sub("''", "\x01".join(texts))
    for pattern in (OF_THE_SHELL, IN_BRACES):
        for found in pattern.finditer(script):
            name = next(group for group in found.groups() if group)
            if (
                name == "inputs"
                or name in known
                or not reader.sees(name)
                or re.search(SETTING.format(name), script, re.MULTILINE)
            ):
                continue
            return found[0], name
    return _empty_braces(script, reader)


def _empty_braces(script: str, reader: YamlReader) -> tuple[str, str] | None:
    """`{}` in a loop, which other programs fill in, where the command is none of these. It may be written out."""
    names = reader.elements()
    if not names or FILLS_BRACES.search(script) or not EMPTY_BRACES.search(WRITTEN_OUT.sub("", script)):
        return None
    return "{}", names[0]


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
