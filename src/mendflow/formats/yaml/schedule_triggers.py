"""Reads `schedule` below `on` of a flow: a cron expression, or a map."""

from collections.abc import Mapping
from datetime import UTC
from typing import Final

from mendflow.core.data.input_types import is_table_path
from mendflow.core.expressions import is_template
from mendflow.core.model.flow import Input
from mendflow.core.model.flow_triggers import ScheduleTrigger
from mendflow.core.model.ids import Instant
from mendflow.core.model.values import Value
from mendflow.core.schedules.due_times import instant_of
from mendflow.formats.hints import Hints, hints
from mendflow.formats.time_zones import zone_or_flaw
from mendflow.formats.yaml import trigger_keys
from mendflow.formats.yaml.document import ListNode, MapNode, ScalarNode, YamlNode, describe, plain_data, setting_data
from mendflow.formats.yaml.fields import Fields, fields_of
from mendflow.formats.yaml.flow_tables import read_flow_table
from mendflow.formats.yaml.reader import YamlReader

KEY_HINTS: Final[Hints] = hints(
    ("tz time-zone zone", "the time zone is `timezone: Europe/Berlin`"),
    ("interval rate period", "an interval is `every: 10 min`"),
    ("start start-date begin", "when it begins is `from: 2026-01-01`"),
    ("end end-date to", "when it ends is `until: 2026-12-31`"),
    ("catchup backfill misfire", "what is done about missed times is `catch-up: latest`, `all` or `skip`"),
    (
        "concurrency concurrency-policy max-active-runs overlap-policy",
        "what is done while an earlier case runs is `overlap: wait`, `skip`, `allow` or `replace`",
    ),
    ("with params parameters args", "what the case is given stands under `inputs:`"),
)


def schedule_of(reader: YamlReader, node: YamlNode | None, declared: Mapping[str, Input]) -> ScheduleTrigger | None:
    """What a node describes, for a flow with these inputs; None if there is none, or it cannot be read, which was
    said."""
    if node is None:
        return None
    if isinstance(node, ScalarNode) and isinstance(node.value, str):
        return ScheduleTrigger(cron=node.value.strip())
    if isinstance(node, ListNode):
        reader.problem(node, "a flow has one schedule; add others by `mendflow schedules add NAME FLOW --cron ...`")
        return None
    if not isinstance(node, MapNode):
        reader.problem(
            node, f'`on.schedule` is a cron expression, such as "30 2 * * *", or a map, not {describe(node)}'
        )
        return None
    given = fields_of(reader, node, trigger_keys.ON_SCHEDULE, "`on.schedule`", KEY_HINTS)
    return _from_map(reader, given, declared) if given is not None else None


def _from_map(reader: YamlReader, given: Fields, declared: Mapping[str, Input]) -> ScheduleTrigger | None:
    before = len(reader.problems)
    name = given.get("timezone", "UTC")
    zone = zone_or_flaw(name)
    if isinstance(zone, str):
        reader.problem(given.node_of("timezone") or given.node, zone)
    trigger = ScheduleTrigger(
        cron=given.get("cron", "").strip(),
        every_ms=given.get("every", 0),
        timezone=name,
        inputs=_inputs(reader, given, declared),
        catch_up=given.get("catch-up", "latest"),
        overlap=given.get("overlap", "wait"),
        starts_at=_instant(reader, given, "from", name),
        ends_at=_instant(reader, given, "until", name),
    )
    return trigger if len(reader.problems) == before else None


def _inputs(reader: YamlReader, given: Fields, declared: Mapping[str, Input]) -> dict[str, Value]:
    node = given.node_of("inputs")
    if node is None:
        return {}
    if not isinstance(node, MapNode):
        reader.problem(node, f"`inputs` is a map from inputs of the flow to their values, not {describe(node)}")
        return {}
    return {name: _value(reader, entry.value, declared.get(name, Input())) for name, entry in node.entries.items()}


def _value(reader: YamlReader, node: YamlNode, declared: Input) -> Value:
    """What cases are given, read by the type of the input. A table is read when a case begins, and looked at here."""
    data = plain_data(node)
    if is_template(data):
        return data
    if is_table_path(declared, data):
        read_flow_table(reader, node, str(data), declared.columns)
    if declared.type == "number":
        return setting_data(node)
    if declared.type == "string" and isinstance(node, ScalarNode) and node.value is not None:
        return node.written
    return data


def _instant(reader: YamlReader, given: Fields, key: str, zone_name: str) -> Instant:
    text = given.get(key, "")
    if not text:
        return 0
    zone = zone_or_flaw(zone_name)
    found = instant_of(text, UTC if isinstance(zone, str) else zone, end=key == "until")
    if found is None:
        reader.problem(given.node_of(key) or given.node, f"`{text:.60}` is no date or time; write one like 2026-01-31")
    return found or 0
