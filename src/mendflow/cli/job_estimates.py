"""Options about simulated jobs: run times, sizes, outputs, or an earlier case to take them from."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

import msgspec

from mendflow.cli.inputs import json_or_text
from mendflow.core.model.data import LOGICAL_PREFIX
from mendflow.core.model.errors import InvalidRequest, NotFound
from mendflow.core.model.ids import item_name
from mendflow.core.model.units import DURATION_EXAMPLES, SIZE_EXAMPLES, duration_ms, size_bytes
from mendflow.core.model.values import Value, file_of
from mendflow.core.model.views import ItemView
from mendflow.formats.spelling import nearest_word
from mendflow.sim.estimates import ANY, Estimate

INPUTS = "inputs"
_ABOUT = "+-"


def estimates_from_options(
    runtimes: Iterable[str], sizes: Iterable[str], outputs: Iterable[str], jobs: Mapping[str, Collection[str]]
) -> dict[str, Estimate]:
    """The estimates of the options, by job. `jobs` are the flow's jobs with the names of their files."""
    made: dict[str, Estimate] = defaultdict(Estimate)
    for name, text in _pairs("--runtime", "JOB=60+-5", runtimes):
        _check_job("--runtime", name, jobs)
        seconds, spread_s = spread_s_of("--runtime", text)
        made[name] = Estimate(seconds=seconds, spread_s=spread_s).over(made[name])
    for name, text in _pairs("--size", "JOB.FILE=700MB", sizes):
        job, _, file = name.partition(".")
        if job == INPUTS or is_place(name):
            continue
        _check_job("--size", job, jobs)
        if file and file not in jobs.get(job, ()):
            raise InvalidRequest(
                f"--size {name}: the job {job} makes no file {file}{_suggestion(file, jobs.get(job, ()))}"
            )
        size = bytes_of(f"--size {name}", text)
        made[job] = (Estimate(files={file: size}) if file else Estimate(file_bytes=size)).over(made[job])
    for name, text in _pairs("--outputs", 'JOB={"rows": 3}', outputs):
        _check_job("--outputs", item_name(name), jobs)
        made[name] = Estimate(outputs=_outputs_of(name, text)).over(made[name])
    return dict(made)


def _outputs_of(name: str, text: str) -> Value:
    """The outputs of a job. Invalid JSON is refused, so that a missing bracket does not silently become a text."""
    if text.startswith("@"):
        return json_or_text(text)
    try:
        value: Value = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise InvalidRequest(
            f"--outputs {name}: {text!r} is not JSON ({error}); a text needs quotes: '\"some\"'"
        ) from None
    return value


def input_sizes(sizes: Iterable[str], inputs: Collection[str]) -> dict[str, int]:
    """The sizes that options give to the flow's own inputs: `inputs.NAME=SIZE`."""
    found = {}
    for name, text in _pairs("--size", "JOB.FILE=700MB", sizes):
        job, _, input = name.partition(".")
        if job == INPUTS:
            if input not in inputs:
                raise InvalidRequest(f"--size {name}: the flow has no input {input}{_suggestion(input, inputs)}")
            found[input] = bytes_of(f"--size {name}", text)
    return found


def is_place(name: str) -> bool:
    """Whether a size is for a file that a flow names, by path or logical name."""
    return name.startswith(LOGICAL_PREFIX) or "/" in name


def place_sizes(sizes: Iterable[str], folder: str) -> dict[str, int]:
    """The sizes of files that flows name: `./raw.bin=2GB`, `lfn:/store/a=2GB`."""
    found = {}
    for name, text in _pairs("--size", "JOB.FILE=700MB", sizes):
        if is_place(name):
            key = name if name.startswith(LOGICAL_PREFIX) else str(Path(folder, name))
            found[key] = bytes_of(f"--size {name}", text)
    return found


def estimates_from_items(items: Iterable[ItemView]) -> dict[str, Estimate]:
    """Estimates from an earlier case: durations of successful items by name, and files and outputs of each item."""
    samples: dict[str, list[float]] = defaultdict(list)
    made: dict[str, Estimate] = {}
    for item in items:
        if item.kind != "job":
            continue
        well = [each for each in item.attempts if each.end == "completed" and each.started_at]
        samples[item.name] += [max(each.ended_at - each.started_at, 0) / 1000 for each in well]
        files = {name: ref.bytes for name, value in item.files.items() if (ref := file_of(value)) is not None}
        made[str(item.item)] = Estimate(files=files, outputs=item.outputs)
    for name, times in samples.items():
        if times:
            made[name] = Estimate(samples=tuple(times)).over(made.get(name, Estimate()))
    if not samples:
        raise NotFound("the case to take run times from has no jobs; name one that ran")
    return made


def spread_s_of(word: str, text: str) -> tuple[float, float]:
    """A mean and a deviation in seconds: `90`, `90+-10`, `2 min +- 20 s`."""
    mean, _, deviation = text.replace("±", _ABOUT).partition(_ABOUT)
    return seconds_of(word, mean), seconds_of(word, deviation) if deviation else 0.0


def seconds_of(word: str, text: str) -> float:
    """Seconds, as a number or with a unit."""
    text = text.strip()
    made = duration_ms(text)
    if made is not None:
        return made / 1000
    return number_of(word, text, f"seconds, or a time like {DURATION_EXAMPLES}")


def number_of(word: str, text: str, wanted: str = "a number") -> float:
    try:
        value = msgspec.convert(text.strip(), float, strict=False)
    except msgspec.ValidationError:
        value = -1.0
    if not 0 <= value < 1e15:
        raise InvalidRequest(f"{word} {text!r} cannot be read; give {wanted}, not negative")
    return value


def bytes_of(word: str, text: str) -> int:
    made = size_bytes(text)
    return made if made is not None else round(number_of(word, text, f"bytes, or a size like {SIZE_EXAMPLES}"))


def _pairs(word: str, like: str, texts: Iterable[str]) -> list[tuple[str, str]]:
    pairs = []
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise InvalidRequest(f"{word} {text!r} has no name or no value; write {word} {like}")
        pairs.append((name.strip(), value.strip()))
    return pairs


def _check_job(word: str, name: str, jobs: Mapping[str, Collection[str]]) -> None:
    if name != ANY and name not in jobs:
        known = (
            f"; its jobs are {', '.join(list(jobs)[:8])}" if not nearest_word(name, jobs) else _suggestion(name, jobs)
        )
        raise InvalidRequest(f"{word} {name}: the flow has no job of that name{known}")


def _suggestion(word: str, known: Iterable[str]) -> str:
    estimate = nearest_word(word, known)
    return f" (did you mean {estimate}?)" if estimate else ""
