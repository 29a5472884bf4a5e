"""The secrets of a job in a flow file."""

from collections.abc import Sequence

from mendflow.core.model.secrets import SecretUse
from mendflow.formats.secret_uses import joined, uses_of
from mendflow.formats.yaml.fields import Fields
from mendflow.formats.yaml.reader import YamlReader


def secrets_of(reader: YamlReader, fields: Fields, usual: Sequence[SecretUse] = ()) -> tuple[SecretUse, ...]:
    """What the job gets, with the secrets of the flow's defaults."""
    node = fields.node_of("secrets")
    if node is None:
        return tuple(usual)
    own: list[SecretUse] = []
    for use, flaw in uses_of(fields.get("secrets")):
        if use is None:
            reader.problem(node, flaw)
        else:
            own.append(use)
    return joined(usual, own)
