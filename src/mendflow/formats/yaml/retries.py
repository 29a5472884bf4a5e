"""`retries` of a job: a number, a rule with waits and causes, or several rules."""

from typing import Any, Final

from mendflow.core.model.jobs import RetryRule
from mendflow.formats.hints import hint_for, plain
from mendflow.formats.retry_causes import cause_flaw
from mendflow.formats.retry_hints import RETRY_HINTS, RETRY_WORDS
from mendflow.formats.spelling import nearest_word
from mendflow.formats.yaml import job_bound_keys
from mendflow.formats.yaml.builder import StepBuilder
from mendflow.formats.yaml.document import ListNode, MapEntry, MapNode, ScalarNode, YamlNode, describe
from mendflow.formats.yaml.fields import Fields
from mendflow.formats.yaml.reader import YamlReader
from mendflow.formats.yaml.shapes import NumberShape

TIMES: Final = NumberShape(whole=True)
FORMS: Final = "`retries: 4`, or `retries: {times: 4, wait: 1 s, on: [75]}`"
ATTEMPTS: Final = frozenset({"attempts", "maxattempts", "tries", "maxtries"})
"""Words that count the first attempt too."""


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
    strangers = [name for name in node.entries if name not in job_bound_keys.RETRY]
    counted = [name for name in strangers if hint_for(name, RETRY_WORDS) == "times" or plain(name) in ATTEMPTS]
    known = {name: entry for name, entry in node.entries.items() if name in job_bound_keys.RETRY}
    table = {name: key for name, key in job_bound_keys.RETRY.items() if name != "times" or "times" in known}
    for name in strangers:
        refuse_retry_key(reader, node.entries[name], name)
    return Fields(reader, MapNode(node.place, known), table if counted else job_bound_keys.RETRY)


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
        reader.problem(entry.key, message, f"`{ours}`" if ours else nearest_word(name, job_bound_keys.RETRY))


def require_cause(reader: YamlReader, node: YamlNode) -> None:
    flaw = cause_flaw(node.value if isinstance(node, ScalarNode) else None, describe(node))
    if flaw is not None:
        reader.problem(node, flaw.message, flaw.suggestion)
