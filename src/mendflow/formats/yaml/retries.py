"""`retries` of a job: a number, a rule with waits and causes, or several rules."""

import re
from difflib import get_close_matches
from typing import Any, Final

from mendflow.core.model.faults import INFRASTRUCTURE_CATEGORIES, Category
from mendflow.core.model.jobs import RetryRule
from mendflow.formats.hints import ALL_CAUSES, CAUSES_ELSEWHERE, RETRY_HINTS, RETRY_WORDS, hint_for, plain
from mendflow.formats.names import NAME
from mendflow.formats.spelling import nearest_word
from mendflow.formats.yaml import flow_keys
from mendflow.formats.yaml.builder import StepBuilder
from mendflow.formats.yaml.document import ListNode, MapEntry, MapNode, ScalarNode, YamlNode, describe
from mendflow.formats.yaml.fields import Fields
from mendflow.formats.yaml.reader import YamlReader
from mendflow.formats.yaml.shapes import NumberShape

TIMES: Final = NumberShape(whole=True)
FORMS: Final = "`retries: 4`, or `retries: {times: 4, wait: 1 s, on: [75]}`"
ATTEMPTS: Final = frozenset({"attempts", "maxattempts", "tries", "maxtries"})
"""Words that count the first attempt too."""

CAUSES: Final = (
    *(each.value for each in Category if each not in {*INFRASTRUCTURE_CATEGORIES, Category.CANCELLED, Category.FLOW}),
    *("exitCode", "signal", "memoryLimit", "memoryKilled", "timeLimit", "missingInput", "missingOutput"),
)
"""What a job's own failures are known by: categories, and the names of the usual faults."""


def retries_of(reader: YamlReader, node: YamlNode) -> dict[str, Any]:
    """How often the job is tried again: a number, a rule, or several. Nothing said and 0 are not the same."""
    if isinstance(node, (MapNode, ListNode)):
        parts = node.parts if isinstance(node, ListNode) else [node]
        if parts and all(isinstance(part, ScalarNode) for part in parts):
            waits = "a list has rules, such as `[{on: [75], times: 4, wait: 1 s}, {times: 1}]`"
            reader.problem(node, f"how often, and how long to wait before, is {FORMS}; {waits}")
            return {}
        rules = [rule for part in parts if (rule := retry_rule(reader, part)) is not None]
        if any(not rule.on for rule in rules[:-1]):
            reader.problem(node, "a rule without `on` takes all failures; it must be the last of the list")
        return {"retry": tuple(rules)}
    times = read_times(reader, node)
    return {"retry": (RetryRule(times=0),)} if times == 0 else {"retries": times or 0}


def read_times(reader: YamlReader, node: YamlNode) -> int | None:
    """A whole number; anything else is answered with the two forms that there are."""
    value = node.value if isinstance(node, ScalarNode) else None
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    likely = f"`{value.strip()}`" if isinstance(value, str) and value.strip().isdecimal() else ""
    reader.problem(node, f"{TIMES.expected} is expected here, not {describe(node)}; write {FORMS}", likely)
    return None


def stated_retries(build: StepBuilder, fields: Fields) -> dict[str, Any]:
    node = fields.node_of("retries")
    found = retries_of(build.reader, node) if node is not None else build.defaults.get("retries", {})
    wait = fields.get("retry-wait") if "retry-wait" in fields else build.defaults.get("retry-wait")
    if "retry-wait" in fields and found.get("retry"):
        told = "`retry-wait` goes with a number of `retries`; in a map of `retries` it is `wait:`"
        build.reader.problem(fields.node.entries["retry-wait"].key, told)
    return {**found, "retry_wait_ms": wait or 0}


def retry_rule(reader: YamlReader, node: YamlNode) -> RetryRule | None:
    fields = retry_fields(reader, node)
    if fields is None:
        return None
    causes = [cause for cause in fields.get("on", []) if cause is not None]
    listed = fields.node_of("on")
    for part in (listed.parts if isinstance(listed, ListNode) else [listed]) if listed is not None else []:
        require_cause(reader, part)
    return RetryRule(
        times=fields.get("times", 0),
        wait_ms=fields.get("wait", 0),
        factor=fields.get("factor", 2.0),
        on=tuple(causes),
    )


def retry_fields(reader: YamlReader, node: YamlNode) -> Fields | None:
    """The keys of a rule. What people write for `times` elsewhere is told once, and not again as missing."""
    if not isinstance(node, MapNode):
        reader.problem(node, f"a rule of `retries` is a map such as {{times: 4, wait: 1 s}}, not {describe(node)}")
        return None
    strangers = [name for name in node.entries if name not in flow_keys.RETRY]
    counted = [name for name in strangers if hint_for(name, RETRY_WORDS) == "times" or plain(name) in ATTEMPTS]
    known = {name: entry for name, entry in node.entries.items() if name in flow_keys.RETRY}
    table = {name: key for name, key in flow_keys.RETRY.items() if name != "times" or "times" in known}
    for name in strangers:
        refuse_retry_key(reader, node.entries[name], name)
    return Fields(reader, MapNode(node.place, known), table if counted else flow_keys.RETRY)


def refuse_retry_key(reader: YamlReader, entry: MapEntry, name: str) -> None:
    message = f"a rule of `retries` has no key `{name}`"
    number = entry.value.value if isinstance(entry.value, ScalarNode) else None
    if plain(name) in ATTEMPTS:
        times = number - 1 if isinstance(number, int) and number > 0 else "N"
        told = "`times` counts the attempts after the first"
        reader.problem(entry.key, f"{message}; {told}", f"`times: {times}`")
    elif hint := hint_for(name, RETRY_HINTS):
        reader.problem(entry.key, f"{message}; {hint}")
    else:
        ours = hint_for(name, RETRY_WORDS)
        reader.problem(entry.key, message, f"`{ours}`" if ours else nearest_word(name, flow_keys.RETRY))


def require_cause(reader: YamlReader, node: YamlNode) -> None:
    value = node.value if isinstance(node, ScalarNode) else None
    if isinstance(value, str) and value.isdecimal():
        value = int(value)
    if isinstance(value, (bool, float)) or (isinstance(value, int) and not 1 <= value <= 255):
        reader.problem(node, f"an exit code from 1 to 255, or a cause, is expected here, not {describe(node)}")
    elif isinstance(value, str) and value not in CAUSES and "${{" not in value:
        refuse_cause(reader, node, value)


def refuse_cause(reader: YamlReader, node: YamlNode, value: str) -> None:
    """A name may be that of a fault of the job's own, such as ValueError, unless it is a word for something else."""
    message = f"`{value}` is no cause of failures"
    ours, numbers = hint_for(value, CAUSES_ELSEWHERE), re.findall(r"\d+", value)
    close = get_close_matches(value, CAUSES, 1, 0.75)
    if plain(value) in ALL_CAUSES:
        reader.problem(node, f"{message}; without `on` all of the job's own are tried again")
    elif ours or close:
        reader.problem(node, message, f"`{ours or close[0]}`")
    elif len(numbers) > 1:
        reader.problem(node, f"{message}; exit codes stand in a list, one by one, as `on: [75, 76]`")
    elif not NAME.fullmatch(value):
        likely = f"`{numbers[0]}`" if numbers and not value.startswith("!") else ""
        reader.problem(node, f"{message}: give an exit code, {', '.join(CAUSES)}", likely)
