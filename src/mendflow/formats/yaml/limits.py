"""The limits of a job in a flow file: what bounds the job itself, and the named limits that it uses."""

from typing import Final

from msgspec.structs import replace

from mendflow.core.model.jobs import Limits
from mendflow.formats.hints import hint_for
from mendflow.formats.named_limits import named_limit_flaw, with_defaults
from mendflow.formats.spelling import nearest_word
from mendflow.formats.yaml import job_bound_keys
from mendflow.formats.yaml.document import ListNode, MapNode, ScalarNode, YamlNode, describe
from mendflow.formats.yaml.fields import fields_of
from mendflow.formats.yaml.job_hints import LIMIT_HINTS
from mendflow.formats.yaml.reader import YamlReader

NO_LIMITS: Final = Limits()


def limits_of(reader: YamlReader, node: YamlNode, usual: Limits = NO_LIMITS) -> Limits:
    """What bounds the job itself, and the named limits that it uses; `usual` are those of the flow's defaults."""
    named = named_limits_of(reader, node)
    if isinstance(node, ListNode):
        return with_defaults(Limits(), named, usual)
    if isinstance(node, MapNode):
        node = replace(node, entries={name: entry for name, entry in node.entries.items() if name not in named})
    fields = fields_of(reader, node, job_bound_keys.LIMITS, "`limits`")
    if fields is None:
        return Limits()
    limits = Limits(
        open_files=fields.get("open-files", 0),
        file_bytes=fields.get("file-size", 0),
        processes=fields.get("processes", 0),
        cpu_ms=fields.get("cpu-time", 0),
        stack_bytes=fields.get("stack", 0),
        data_bytes=fields.get("data-segment", 0),
        locked_bytes=fields.get("locked-memory", 0),
        virtual_bytes=fields.get("virtual-memory", 0),
        core_bytes=fields.get("core-dump"),
    )
    return with_defaults(limits, named, usual)


def named_limits_of(reader: YamlReader, node: YamlNode) -> dict[str, int]:
    """How much of each named limit the job uses."""
    if isinstance(node, ListNode):
        entries: list[tuple[YamlNode, object, object]] = [
            (part, part.value if isinstance(part, ScalarNode) else describe(part), 1) for part in node.parts
        ]
    elif isinstance(node, MapNode):
        entries = [
            (entry.key, name, entry.value.value if isinstance(entry.value, ScalarNode) else describe(entry.value))
            for name, entry in node.entries.items()
            if name not in job_bound_keys.LIMITS
        ]
    else:
        return {}
    found: dict[str, int] = {}
    for place, name, amount in entries:
        hint = hint_for(name, LIMIT_HINTS) if isinstance(name, str) else ""
        if not hint and isinstance(name, str) and (near := nearest_word(name, job_bound_keys.LIMITS)):
            hint = f"write {near}, or give the named limit a name that cannot be taken for it"
        flaw = (
            f"`limits` has no key `{name}`; {hint}" if hint else named_limit_flaw(name, amount, job_bound_keys.LIMITS)
        )
        if flaw:
            reader.problem(place, flaw)
        found[str(name)] = amount if isinstance(amount, int) and not flaw else 0
    return found
