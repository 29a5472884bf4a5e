"""Checks what another engine says: an event that has a key which nobody reads is refused, and says which."""

from typing import Final

import msgspec

from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.ids import CaseId, ItemId, item_name
from mendflow.core.model.repair import CASE_LEVEL, ExceptionEvent, ExceptionType
from mendflow.core.model.values import Value
from mendflow.core.scheduling.reported_outcomes import reported_fault
from mendflow.services.base.engine_interfaces import CaseFacts
from mendflow.services.recovery.external_triggers import demand_trigger

CASE_FACTS: Final = "case"
"""Under this name an event brings what its engine knows of the case, as CaseFacts has it."""

FACTS: Final = frozenset(
    {CASE_FACTS, "fault", "job", "outcome", "trigger", "data", "measures", "values", "timed_out", "pattern"}
)
MAPS: Final = frozenset({"job", "outcome", "measures", "values"})
TEXTS: Final = frozenset({"trigger", "timed_out", "pattern"})
ID_CHARS_MAX: Final = 500
ITEMS_MAX: Final = 5_000
"""How many items a case may be told with, and how many names have a status, or results. All of it is read and written
in one step, while which nobody else is served: so many take some hundredths of a second."""
FACTS_BYTES_MAX: Final = 1 << 20
_EXTERNAL: Final = frozenset({ExceptionType.CASE_EXTERNAL, ExceptionType.ITEM_EXTERNAL})
_FAULT_KEYS: Final = frozenset(Fault.__struct_fields__)
_OURS: Final = frozenset({"is_started_here"})
"""Facts of a case that only this server's engine can state."""


def checked_event(event: ExceptionEvent) -> ExceptionEvent:
    """The event, with the fault that its facts bring; refused if anything in it is wrong."""
    if not event.id or len(event.id) > ID_CHARS_MAX or "!" in event.id:
        raise InvalidRequest("an event needs an id of its own, without `!`", field="id")
    demand_case_name(event.case)
    _demand_keys(event.facts, FACTS, "facts")
    _demand_size(event.facts, "facts")
    for name in MAPS & event.facts.keys():
        if not isinstance(event.facts[name], dict):
            raise InvalidRequest(f"the fact `{name}` of an event is a map", field=f"facts.{name}")
    for name in TEXTS & event.facts.keys():
        if not isinstance(event.facts[name], str):
            raise InvalidRequest(f"the fact `{name}` of an event is a text", field=f"facts.{name}")
    if event.type in _EXTERNAL:
        demand_trigger(str(event.facts.get("trigger", "")), event.facts.get("data"))
    return _with_fault(_with_item(event))


def _with_item(event: ExceptionEvent) -> ExceptionEvent:
    """An item is known by its task, and the task by its item, where only one is told."""
    if event.type in CASE_LEVEL:
        return event
    if event.type is ExceptionType.SELECTION and not (event.item or event.task):
        raise InvalidRequest("a selection is about an item: name it", field="item")
    item = event.item or (ItemId(event.task) if event.task else None)
    return msgspec.structs.replace(event, item=item, task=event.task or item_name(item or ""))


def _with_fault(event: ExceptionEvent) -> ExceptionEvent:
    told = event.facts.get("fault")
    if told is None:
        return msgspec.structs.replace(event, fault=reported_fault(event.fault)) if event.fault is not None else event
    if event.fault is not None:
        raise InvalidRequest("say the fault once: in `fault`, or in `facts.fault`", field="facts.fault")
    if not isinstance(told, dict):
        raise InvalidRequest("the fact `fault` of an event is a map", field="facts.fault")
    _demand_keys(told, _FAULT_KEYS, "facts.fault")
    try:
        fault = msgspec.convert({"name": "failed", "category": Category.JOB, "message": "", **told}, Fault)
    except msgspec.ValidationError as error:
        raise InvalidRequest(
            f"the event does not say rightly what the fault is: {error}", field="facts.fault"
        ) from error
    facts = {name: fact for name, fact in event.facts.items() if name != "fault"}
    return msgspec.structs.replace(event, fault=reported_fault(fault), facts=facts)


def _demand_size(facts: dict[str, Value], where: str) -> None:
    if (size := len(msgspec.json.encode(facts))) > FACTS_BYTES_MAX:
        raise InvalidRequest(
            f"`{where}` has {size:,} bytes, and at most {FACTS_BYTES_MAX:,} are taken; tell what rules read, and name"
            " where the rest is",
            field=where,
        )


def _demand_few_items(facts: dict[str, Value]) -> None:
    for name in ("items", "statuses", "jobs"):
        told = facts.get(name)
        if isinstance(told, list | dict) and len(told) > ITEMS_MAX:
            raise InvalidRequest(
                f"`facts.{CASE_FACTS}.{name}` has {len(told):,} entries, and at most {ITEMS_MAX:,} are taken; tell"
                " those that are live and that rules ask about",
                field=f"facts.{CASE_FACTS}.{name}",
            )


def _demand_keys(given: dict[str, Value], known: frozenset[str], where: str) -> None:
    if unknown := sorted(given.keys() - known):
        raise InvalidRequest(
            f"`{unknown[0]:.80}` is no key of `{where}`; it has {', '.join(sorted(known))}",
            field=f"{where}.{unknown[0]:.80}",
        )


def demand_case_name(case: str) -> None:
    """People name the case in commands and addresses: as ENGINE:CASE, and CASE:ITEM."""
    if not case or len(case) > ID_CHARS_MAX or "/" in case or not case.isprintable():
        raise InvalidRequest(
            f"{case!r:.80} is not a valid id for a case: 1 to {ID_CHARS_MAX} printable characters, without `/`",
            field="case",
        )


def case_facts_in(event: ExceptionEvent) -> CaseFacts:
    """What the event says of its case."""
    facts = event.facts.get(CASE_FACTS, {})
    if not isinstance(facts, dict):
        raise InvalidRequest(f"the fact `{CASE_FACTS}` of an event is a map", field=f"facts.{CASE_FACTS}")
    return case_facts(event.case, event.flow, facts)


def case_facts(case: CaseId, flow: str, facts: dict[str, Value]) -> CaseFacts:
    demand_case_name(case)
    _demand_size(facts, f"facts.{CASE_FACTS}")
    _demand_few_items(facts)
    known = {"version": "", "status": "running", "started_at": 0, **facts, "case": case, "flow": flow}
    try:
        if unknown := sorted(facts.keys() & _OURS):
            raise msgspec.ValidationError(f"Object contains unknown field `{unknown[0]}`")
        return msgspec.convert(known, CaseFacts)
    except msgspec.ValidationError as error:
        raise InvalidRequest(
            f"the event does not say rightly what its case is: {error}", field=f"facts.{CASE_FACTS}"
        ) from error
