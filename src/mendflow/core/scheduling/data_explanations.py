"""Explains data locality: why a pilot got a job, and why a job that reads files waits."""

from collections.abc import Iterable

from mendflow.core.model.ids import Instant
from mendflow.core.model.jobs import JobSpec
from mendflow.core.scheduling.amounts import clock, duration, size
from mendflow.core.scheduling.cache_index import CacheIndex, PilotCache, file_key
from mendflow.core.scheduling.data_match import OVERTAKES_MAX, MatchReason
from mendflow.core.scheduling.data_wait import Deferral
from mendflow.core.scheduling.job_heap import Files

HOLDERS_MAX = 100


def input_bytes(spec: JobSpec) -> int:
    """How many bytes a job reads, each file once."""
    return sum({file.sha256: file.bytes for file in spec.inputs.values()}.values())


def files_of(spec: JobSpec) -> Files:
    """The files that a job reads, as the queue knows them."""
    return tuple(dict.fromkeys(file_key(file.sha256) for file in spec.inputs.values()))


def match_sentence(spec: JobSpec, chosen: MatchReason) -> str:
    """Why a pilot got this job."""
    there = f"{size(chosen.bytes)} of {size(input_bytes(spec))} of its input are there"
    if chosen.bytes > chosen.own_bytes:
        there += f", {size(chosen.bytes - chosen.own_bytes)} of that with other pilots of the host"
    if not chosen.bytes:
        there = f"nothing of its {size(input_bytes(spec))} of input is there"
    if chosen.turn:
        return f"it was its turn after others with more of their input there went first {OVERTAKES_MAX} times; {there}"
    return there if chosen.bytes else f"it was the first in the queue; {there}"


def explain_deferral(spec: JobSpec, kept: Deferral, now: Instant) -> str:
    """Why a job waits although other pilots could take it."""
    has = f"{size(kept.there_bytes)} of {size(input_bytes(spec))} of its input"
    return (
        f"it is kept for pilot {kept.pilot}, which is idle and has {has}; "
        f"from {clock(kept.until)} on, {duration(max(0, kept.until - now))} from now, any pilot may take it"
    )


def facts(spec: JobSpec, caches: CacheIndex, overtaken: int) -> list[str]:
    """Where the input of a waiting job is, and whether others overtook it because of theirs."""
    if not spec.inputs:
        return []
    files, sentences = files_of(spec), []
    best = max(_holders(files, caches), key=lambda shelf: (shelf.bytes_of(files), shelf.pilot), default=None)
    if best is None:
        sentences.append(f"no pilot has any of its {size(input_bytes(spec))} of input")
    else:
        sentences.append(
            f"pilot {best.pilot} has {size(best.bytes_of(files))} of {size(input_bytes(spec))} of its input"
        )
    if overtaken:
        times = "once" if overtaken == 1 else f"{overtaken} times"
        sentences.append(
            f"others with more of their input at hand overtook it {times}; after {OVERTAKES_MAX} it is its turn"
        )
    return sentences


def _holders(files: Files, caches: CacheIndex) -> Iterable[PilotCache]:
    pilots = dict.fromkeys(pilot for file in files for pilot in caches.holders(file))
    for pilot in list(pilots)[:HOLDERS_MAX]:
        if (shelf := caches.of(pilot)) is not None:
            yield shelf
