"""Durations and sizes as people write them."""

import pytest

from mendflow.core.engine import Case, decide, evolve
from mendflow.core.engine.activities.job_parts import amounts_at_start
from mendflow.core.engine.messages import StartCase
from mendflow.core.model.flow import Flow
from mendflow.core.model.ids import CaseId
from mendflow.core.model.units import duration_ms, size_bytes
from mendflow.formats.spelling import nearest_word
from tests.formats.conftest import Complaints, Reader


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("90 s", 90_000),
        ("90s", 90_000),
        ("1h30m", 5_400_000),
        ("1 h 30 min", 5_400_000),
        ("2 days", 172_800_000),
        ("0.5 s", 500),
        ("250 ms", 250),
        ("1 Week", 604_800_000),
        ("0 s", 0),
        ("2 hrs", 7_200_000),
        ("1.h", 3_600_000),
        ("1.5.h", 5_400_000),
        ("01:00:00", 3_600_000),
        ("100:00:30", 360_030_000),
        ("1-12:00:00", 129_600_000),
        ("2-12:30", 217_800_000),
        ("PT1H30M", 5_400_000),
        ("P1D", 86_400_000),
        ("P1DT2H3M4S", 93_784_000),
    ],
)
def test_a_duration_has_a_unit(text: str, wanted: int) -> None:
    assert duration_ms(text) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "5",
        "5 fortnights",
        "-3 s",
        "1h 30",
        "s",
        "9" * 40 + " s",
        "1e9 s",
        "1h!",
        "1:30",
        "1:60:00",
        "1-0",
        "P",
        "PT",
        "P1",
        "P1M",
        "1..h",
    ],
)
def test_what_is_no_duration_is_none(text: str) -> None:
    assert duration_ms(text) is None


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("2 GB", 2_000_000_000),
        ("512 MiB", 512 * 1024**2),
        ("1.5 kB", 1500),
        ("10 B", 10),
        ("1tib", 1024**4),
        ("2G", 2 * 10**9),
        ("512m", 512 * 10**6),
        ("2 K", 2000),
        ("2Gi", 2 * 1024**3),
        ("2.GB", 2 * 10**9),
    ],
)
def test_a_size_has_a_unit(text: str, wanted: int) -> None:
    assert size_bytes(text) == wanted


@pytest.mark.parametrize("text", ["", "2", "2 GB 3 MB", "2,5 GB", "2 i", "much", "999999999999999 PB"])
def test_what_is_no_size_is_none(text: str) -> None:
    assert size_bytes(text) is None


def test_the_nearest_word_is_found_whatever_its_case() -> None:
    assert nearest_word("memry", ["memory", "cpus"]) == "`memory`"
    assert nearest_word("MEMORY", ["memory", "cpus"]) == "`memory`"
    assert nearest_word("xyz", ["memory", "cpus"]) == ""


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("time: 1:30", "(did you mean `1 h 30 min`, or `1 min 30 s`?)"),
        ("time: 1-12", "(did you mean `1 d 12 h`?)"),
        ("time: 1h30", "(did you mean `1h30m`?)"),
        ("time: 90", "90 lacks its unit (did you mean `90 s`?)"),
        ("time: 1 month", "(did you mean `30 days`?)"),
        ("time: unlimited", "leave the key out if there is no bound"),
        ("memory: 2,5 GB", "(did you mean `2.5 GB`?)"),
        ("memory: 4G per cpu", "(did you mean `4G`?)"),
        ("memory: 2", "2 lacks its unit (did you mean `2 GB`?)"),
        ("memory: 2048", "2048 lacks its unit (did you mean `2048 MB`?)"),
        ("memory: 2000000000", "lacks its unit (did you mean `2 GB`?)"),
    ],
)
def test_what_has_no_unit_or_two_meanings_is_answered_with_what_to_write(
    complaints: Complaints, key: str, meant: str
) -> None:
    [said] = complaints(f"jobs:\n  a:\n    run: x\n    {key}\n")
    assert meant in said


def first_orders(flow: Flow) -> str:
    case = Case.blank()
    command = StartCase(case=CaseId("c"), flow=flow, inputs={})
    return str([order for event in decide(case, command, 0) for order in evolve(case, event)])


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("memory", "x: memory is 'lots' (from inputs.n); write a size such as 200 MB"),
        ("disk", "x: disk is 'lots' (from inputs.n); write a size such as 20 GB"),
        ("time", "x: time is 'lots' (from inputs.n); write a duration such as 10 min"),
        ("cpus", "x: cpus is 'lots' (from inputs.n); write a number such as 2 or 0.5"),
        ("gpus", "x: gpus is 'lots' (from inputs.n); write a number such as 1"),
    ],
)
def test_a_value_that_is_no_amount_is_told_in_the_words_of_the_flow(read: Reader, key: str, told: str) -> None:  # DU-3
    flow = read('inputs: {n: lots}\njobs: {x: {run: y, KEY: "${{ inputs.n }}"}}\n'.replace("KEY", key))
    assert told in first_orders(flow).replace("\\'", "'")
    assert amounts_at_start(flow, {}) == [f"job {told}"]
    assert amounts_at_start(flow, {"n": "auto" if key in ("memory", "time") else 4_000_000}) == []


def test_what_may_never_run_or_is_not_known_yet_is_not_refused_at_the_start(read: Reader) -> None:  # DU-3
    flow = read(
        "inputs: {n: lots}\n"
        "jobs:\n"
        "  a: {run: y, if: inputs.n == 'small', memory: '${{ inputs.n }}'}\n"
        "  b: {run: y}\n"
        "  c: {run: y, memory: '${{ jobs.b.outputs.size }}'}\n"
        "  d: {needs: b, for-each: '${{ [1, 2] }}', run: y, memory: '${{ inputs.n }} GB'}\n"
    )
    assert amounts_at_start(flow, {}) == [
        "job d: memory is 'lots GB' (from `${{ inputs.n }} GB`); write a size such as 200 MB"
    ]
    assert amounts_at_start(flow, {"n": "2"}) == []


@pytest.mark.parametrize(
    ("key", "value", "told", "good"),
    [
        ("memory", "${{ inputs.n }}", "gives 2, which is 2 bytes; write its unit behind it", "${{ inputs.n }} kB"),
        ("disk", "${{ inputs.n * 100 }}", "gives 200, which is 200 bytes", "${{ inputs.n * 1000000 }}"),
        ("time", "${{ inputs.n * 15 }}", "gives 30, which is 30 milliseconds", "${{ duration('1s') * inputs.n }}"),
    ],
)
def test_a_number_of_an_expression_that_lacks_its_unit_is_refused(  # DU-3
    read: Reader, key: str, value: str, told: str, good: str
) -> None:
    flow = 'inputs: {n: 2}\njobs: {x: {run: y, %s: "%s"}}\n'
    assert told in first_orders(read(flow % (key, value)))
    assert "SubmitJob" in first_orders(read(flow % (key, good)))
