"""How much others may say of an end, besides what was made: lists of jobs, decisions and pages show it to everybody, so
that one long text would keep them all waiting.

A text that is too long is cut, and says so; a number out of range is the nearest that is in it."""

from operator import attrgetter
from typing import Final

import msgspec
from msgspec.structs import replace

from mendflow.core.model.faults import Fault
from mendflow.core.model.jobs import Attempt, Measurements, Outcome, StoredLog
from mendflow.core.model.sync import NAME_CHARS_MAX, NUMBER_MAX, PATH_CHARS_MAX
from mendflow.core.model.values import Value

TEXT_CHARS_MAX: Final = 10_000
LOG_CHARS_MAX: Final = 20_000
DATA_BYTES_MAX: Final = 256 << 10
LISTED_MAX: Final = 100

_NUMBERS: Final = tuple(each.name for each in msgspec.structs.fields(Measurements) if each.type is int)
_numbers_of: Final = attrgetter(*_NUMBERS)
_TEXTS: Final = {
    "cached_from": NAME_CHARS_MAX,
    "folder": PATH_CHARS_MAX,
    "code_mismatch": TEXT_CHARS_MAX,
    "undeclared_reads": TEXT_CHARS_MAX,
    "left_running": TEXT_CHARS_MAX,
    "image": NAME_CHARS_MAX,
}
_texts_of = attrgetter(*_TEXTS)


def cut_text(text: str, chars_max: int) -> str:
    """At most so many characters, with a word about it if there were more."""
    if len(text) <= chars_max:
        return text
    note = f"... (cut: it had {len(text)} characters)"
    return text[: chars_max - len(note)] + note


def cut_log(text: str) -> str:
    """The end of a log, of which the last is worth the most."""
    if len(text) <= LOG_CHARS_MAX:
        return text
    note = f"[mendflow: this end of a log was cut, it had {len(text)} characters]\n"
    return note + text[len(note) - LOG_CHARS_MAX :]


def bounded_number(number: int, least: int = 0) -> int:
    return min(max(least, number), NUMBER_MAX)


def bounded_outcome(outcome: Outcome) -> Outcome:
    """The outcome with bounds on all that is told beside its outputs; its fault is bounded for itself."""
    changed: dict[str, object] = {}
    texts: tuple[str, ...] = _texts_of(outcome)
    if any(texts):
        bounded = zip(_TEXTS.items(), texts, strict=True)
        changed.update({name: cut_text(text, most) for (name, most), text in bounded if len(text) > most})
    if len(outcome.log_tail) > LOG_CHARS_MAX:
        changed["log_tail"] = cut_log(outcome.log_tail)
    if (code := _bounded_code(outcome.exit_code)) != outcome.exit_code:
        changed["exit_code"] = code
    if (measures := bounded_measures(outcome.measures)) is not outcome.measures:
        changed["measures"] = measures
    if outcome.log is not None and log_flaw(outcome.log):
        changed["log"] = None
    if (values := bounded_values(outcome.values)) is not outcome.values:
        changed["values"] = values
    return replace(outcome, **changed) if changed else outcome


def bounded_fault(fault: Fault) -> Fault:
    message, data = fault.message, fault.data
    if isinstance(data, str | list | dict) and (flaw := _data_flaw(data)):
        note = f" (its data was left out: {flaw})"
        message, data = cut_text(message, TEXT_CHARS_MAX - len(note)) + note, None
    bounded = (
        cut_text(fault.name, NAME_CHARS_MAX),
        cut_text(message, TEXT_CHARS_MAX),
        cut_log(fault.log_tail),
        cut_text(fault.stage, NAME_CHARS_MAX),
        cut_text(fault.file, PATH_CHARS_MAX),
        cut_text(fault.rejected_by, NAME_CHARS_MAX),
        _bounded_code(fault.exit_code),
        _bounded_code(fault.signal),
    )
    told = (fault.name, fault.message, fault.log_tail, fault.stage, fault.file, fault.rejected_by)
    if data is fault.data and bounded == (*told, fault.exit_code, fault.signal):
        return fault
    name, message, log_tail, stage, file, rejected_by, exit_code, signal = bounded
    return replace(
        fault,
        name=name,
        message=message,
        data=data,
        log_tail=log_tail,
        stage=stage,
        file=file,
        rejected_by=rejected_by,
        exit_code=exit_code,
        signal=signal,
    )


def bounded_values(values: dict[str, Value]) -> dict[str, Value]:
    """The values that a job reports of itself, or none: its pilot refuses far fewer bytes of them."""
    return {} if values and _data_flaw(values) else values


def bounded_measures(measures: Measurements) -> Measurements:
    """Each heartbeat has some, nearly always as they may be."""
    numbers = _numbers_of(measures)
    if not measures.damaged and not measures.changed_inputs and min(numbers) >= 0 and max(numbers) <= NUMBER_MAX:
        return measures
    changed: dict[str, object] = {
        name: bounded_number(number) for name in _NUMBERS if not 0 <= (number := getattr(measures, name)) <= NUMBER_MAX
    }
    for name in ("damaged", "changed_inputs"):
        told: tuple[str, ...] = getattr(measures, name)
        if told and (len(told) > LISTED_MAX or any(len(each) > PATH_CHARS_MAX for each in told)):
            changed[name] = tuple(cut_text(each, PATH_CHARS_MAX) for each in told[:LISTED_MAX])
    return replace(measures, **changed) if changed else measures


def bounded_attempt(attempt: Attempt) -> Attempt:
    """An attempt as another domain tells it."""
    names = ("host", "site", "token", "end", "pilot")
    requeue = attempt.requeue
    if requeue is not None:
        by, reason = cut_text(requeue.by, NAME_CHARS_MAX), cut_text(requeue.reason, TEXT_CHARS_MAX)
        requeue = replace(requeue, by=by, reason=reason, at=bounded_number(requeue.at))
    numbers = ("fence", "number", "serial", "lease_ms", "granted_at", "ended_at", "asked_bytes", "asked_ms")
    return replace(
        attempt,
        **{name: cut_text(getattr(attempt, name), NAME_CHARS_MAX) for name in names},
        **{name: bounded_number(getattr(attempt, name)) for name in numbers},
        because=cut_text(attempt.because, TEXT_CHARS_MAX),
        folder=cut_text(attempt.folder, PATH_CHARS_MAX),
        measures=bounded_measures(attempt.measures),
        requeue=requeue,
        log=attempt.log if attempt.log is not None and not log_flaw(attempt.log) else None,
    )


def log_flaw(log: StoredLog) -> str:
    """What is wrong with the numbers of a stored log; empty if nothing is."""
    if not 0 <= log.bytes <= NUMBER_MAX:
        return f"{log.bytes} bytes were printed"
    if min(log.left_out_at, log.left_out_bytes) < 0 or log.left_out_at + log.left_out_bytes > log.bytes:
        return f"of {log.bytes} bytes {log.left_out_bytes} were left out from {log.left_out_at} on"
    return ""


def _bounded_code(code: int | None) -> int | None:
    return code if code is None or abs(code) <= NUMBER_MAX else bounded_number(code, -NUMBER_MAX)


def _data_flaw(data: object) -> str:
    try:
        size = len(msgspec.json.encode(data))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        return f"it cannot be written: {error!s:.200}"
    return f"{size} bytes" if size > DATA_BYTES_MAX else ""
