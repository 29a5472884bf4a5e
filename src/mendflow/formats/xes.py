"""Histories as XES 1.0 (IEEE 1849), the format of process mining tools.

A case is a trace, an entry of its history an event: its subject is `concept:name`, what happened is
`lifecycle:transition` in the standard's terms, who did it is `org:resource`. Our own terms are added under `mendflow:`.
Characters that XML cannot represent are dropped."""

import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from xml.sax.saxutils import quoteattr

from mendflow.core.model.ids import Instant
from mendflow.core.model.repair_views import HistoryEntry
from mendflow.core.model.views import CaseView

HEAD = """\
<?xml version="1.0" encoding="UTF-8"?>
<log xes.version="1.0" xes.features="" xmlns="http://www.xes-standard.org/">
  <extension name="Concept" prefix="concept" uri="http://www.xes-standard.org/concept.xesext"/>
  <extension name="Time" prefix="time" uri="http://www.xes-standard.org/time.xesext"/>
  <extension name="Lifecycle" prefix="lifecycle" uri="http://www.xes-standard.org/lifecycle.xesext"/>
  <extension name="Organizational" prefix="org" uri="http://www.xes-standard.org/org.xesext"/>
  <global scope="trace">
    <string key="concept:name" value="unknown"/>
  </global>
  <global scope="event">
    <string key="concept:name" value="unknown"/>
    <date key="time:timestamp" value="1970-01-01T00:00:00.000+00:00"/>
    <string key="lifecycle:transition" value="complete"/>
  </global>
  <classifier name="Activity" keys="concept:name"/>
  <classifier name="Activity and transition" keys="concept:name lifecycle:transition"/>
"""
TAIL = "</log>\n"
_CUT = "  <!-- This log is cut: there are more cases than the {limit} newest, which it has. -->\n"
UNKNOWN = "unknown"
"""The word that the standard has for a transition that it has no word for."""

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def log(name: str, traces: Iterable[tuple[CaseView, Sequence[HistoryEntry]]]) -> str:
    return "".join([_head(name), *(trace(case, entries) for case, entries in traces), TAIL])


async def log_of_cases(
    name: str,
    cases: AsyncGenerator[CaseView, None],
    history: Callable[[str], Awaitable[Sequence[HistoryEntry]]],
    limit: int,
) -> AsyncGenerator[str, None]:
    """The log of the first so many cases, one trace at a time, so that the whole is never in memory. It begins when
    the first case is known. If there are more cases, it says so at its end."""
    case, told = await anext(cases, None), 0
    yield _head(name)
    while case is not None and told < limit:
        yield trace(case, await history(case.id))
        case, told = await anext(cases, None), told + 1
    yield TAIL if case is None else _CUT.format(limit=limit) + TAIL


def is_cut(log: str) -> bool:
    """Whether there are more cases than the log has."""
    return log.endswith(f"-->\n{TAIL}")


def _head(name: str) -> str:
    """The log before its traces; `TAIL` ends it."""
    return HEAD + _string("concept:name", name, 2) + _string("lifecycle:model", "standard", 2)


def trace(case: CaseView, entries: Sequence[HistoryEntry]) -> str:
    about = {
        "concept:name": str(case.id),
        "mendflow:flow": case.flow,
        "mendflow:digest": case.digest,
        "mendflow:status": case.status,
        "mendflow:owner": case.owner,
    }
    text = "".join(_string(key, value, 4) for key, value in about.items() if value)
    return f"  <trace>\n{text}{''.join(map(_event, entries))}  </trace>\n"


def _event(entry: HistoryEntry) -> str:
    return f"    <event>\n{''.join(_attributes(entry))}    </event>\n"


def _attributes(entry: HistoryEntry) -> Iterator[str]:
    yield _string("concept:name", entry.name or entry.what, 6)
    yield f'      <date key="time:timestamp" value="{_time(entry.at)}"/>\n'
    yield _string("lifecycle:transition", entry.lifecycle or UNKNOWN, 6)
    ours = {
        "org:resource": entry.by,
        "mendflow:what": entry.what,
        "mendflow:source": entry.source,
        "mendflow:case": str(entry.case),
        "mendflow:item": str(entry.item or ""),
        "mendflow:message": entry.message,
        "mendflow:decision": entry.decision,
        "mendflow:exlet": entry.exlet,
    }
    for key, value in ours.items():
        if value:
            yield _string(key, value, 6)


def _string(key: str, value: str, indent: int) -> str:
    return f"{' ' * indent}<string key={quoteattr(key)} value={quoteattr(_NOT_XML.sub('', value))}/>\n"


def _time(at: Instant) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="milliseconds")
