"""The key `on` of a flow: what is read from it, in YAML and Python alike, and what is told of what is wrong."""

from pathlib import Path
from typing import Any

import pytest

from mendflow import flow, shell
from mendflow.core.data.elements import normalize_element
from mendflow.core.data.flow_triggers import flow_watch, folder_element, trigger_name
from mendflow.core.data.name_mapping import name_at, place_of
from mendflow.core.model.errors import BadFlow
from mendflow.core.model.flow_triggers import EndNotice, FileArrival, FlowTriggers, ScheduleTrigger
from tests.formats.conftest import Complaints, Reader

REST = "\njobs: {a: {run: x}}"
FILE = "inputs: {file: {type: file}}\n"


def test_files_that_arrive_and_ends_that_are_told_are_read(read: Reader) -> None:
    found = read(
        FILE
        + 'on: {files: {in: drop:incoming/, match: "*.csv", stable: 30 s, every: 5 s},'
        + " failure: {notify: https://example.org/x}, finished: {notify: [pager, hook-1]}}"
        + REST
    ).triggers
    assert found is not None
    assert found.files == FileArrival(
        input="file", element="drop", prefix="incoming", match="*.csv", stable_ms=30_000, every_ms=5_000
    )
    assert found.notices == (
        EndNotice(on=("failed",), notify=("https://example.org/x",)),
        EndNotice(on=("completed", "failed", "cancelled"), notify=("pager", "hook-1")),
    )


def test_a_folder_is_looked_for_beside_the_flow(read: Reader, tmp_path: Path) -> None:
    found = read(f"{FILE}on: {{files: {{in: ../in}}}}{REST}").triggers
    assert found is not None and found.files is not None
    assert (found.files.folder, found.files.element) == (str(tmp_path.parent / "in"), "")


def test_the_only_input_of_a_file_takes_it_unless_another_is_named(read: Reader) -> None:
    inputs = "inputs: {one: {type: files}, n: 3}\n"
    named = "inputs: {one: {type: file, default: a.txt}, two: {type: file}}\n"
    for text, wanted in ((inputs + "on: {files: {in: x}}", "one"), (named + "on: {files: {in: x, input: two}}", "two")):
        found = read(text + REST).triggers
        assert found is not None and found.files is not None and found.files.input == wanted


def test_a_flow_without_the_key_has_no_triggers(read: Reader) -> None:
    assert read("jobs: {a: {run: x}}").triggers is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "on: {files: {in: x}}",
            "1:13: no input of the flow takes the file; declare one: `inputs: {file: {type: file}}`",
        ),
        (
            "inputs: {a: {type: file}, b: {type: files}}\non: {files: {in: x}}",
            "2:13: several inputs could get the file",
        ),
        (FILE + "on: {files: {in: x, input: b}}", "2:28: the flow has no input `b` for the file; it has file"),
        ("inputs: {a: {type: number}}\non: {files: {in: x, input: a}}", "2:28: the input `a` is a number"),
        (FILE + "on: {files: {match: x}}", "2:13: `in` is missing"),
        (FILE + "on: {files: {in: s3://bucket/x}}", "2:18: an address is a storage element: add it by `mendflow data"),
        (FILE + "on: {files: {in: 'drop:../x'}}", "2:18: '../x' is no path below a storage element"),
        (
            FILE + "on: {files: {in: x, match: '*.[csv'}}",
            "2:28: '*.[csv' is no pattern for files: it has a [ that no ]",
        ),
        (FILE + "on: {files: {in: x, match: '{a,b}.csv'}}", "2:28: '{a,b}.csv' is no pattern for files: braces"),
        (FILE + "on: {files: {in: x, match: /x/*.csv}}", "2:28: '/x/*.csv' is no pattern for files"),
        (FILE + "on: {files: {in: x, every: 1 ms}}", "2:28: a folder is looked at every 100 ms at most"),
        (FILE + "on: {files: {in: x, stable: 5}}", "did you mean `5 s`?"),
        (FILE + "on: {files: {in: x, pattern: 5}}", "2:21: `on.files` has no key `pattern`"),
        ("inputs: {file: {type: file}, n: {type: number}}\non: {files: {in: x}}", "nobody gives the input `n` when a"),
        ("on: {failure: {notify: []}}", "1:24: nobody is told"),
        ("on: {failure: {}}", "`notify` is missing"),
        (
            "on: {failure: {notify: ftp://ann@example.org}}",
            "1:24: `ftp://ann@example.org` is no http(s) or mail address",
        ),
        (
            "on: {failure: {notify: ./tell.sh it}}",
            "1:24: `./tell.sh it` is no http(s) or mail address and not the name",
        ),
        ("on: {sucess: {notify: x}}", "1:6: `on` has no key `sucess` (did you mean `success`?)"),
        (
            "on: {error: {notify: x}}",
            "1:6: `on` has no key `error`; who is told of failures is `failure: {notify: URL}`",
        ),
        (
            "on: push",
            "1:5: `on` is a map with `files:`, `schedule:`, `failure:`, `success:` or `finished:`, not the text `push`",
        ),
        ("on: {}", "1:5: `on` is a map with `files:`, `schedule:`, `failure:`, `success:` or `finished:`, not nothing"),
        ("triggers: {}", "1:1: a flow has no key `triggers`; what starts cases by itself"),
    ],
)
def test_what_is_wrong_is_told_with_its_place_and_what_to_do(complaints: Complaints, text: str, told: str) -> None:
    found = complaints(text + REST)
    assert len(found) == 1 and told in found[0], found


def test_a_schedule_is_a_cron_expression_or_a_map(read: Reader) -> None:  # DU-6
    short = read('on: {schedule: "30 2 * * 1-5"}\nname: f\njobs: {a: "true"}').triggers
    assert short == FlowTriggers(schedule=ScheduleTrigger(cron="30 2 * * 1-5"))
    text = """
name: f
inputs: {day: {type: string}, depth: 3}
on:
  schedule:
    every: 6 h
    timezone: Europe/Berlin
    inputs: {day: "${{ schedule.date }}", depth: 5}
    catch-up: all
    overlap: allow
    from: 2026-01-01
    until: 2026-01-31
jobs: {a: "true"}
"""
    triggers = read(text).triggers
    assert triggers is not None and triggers.schedule == ScheduleTrigger(
        every_ms=6 * 3_600_000,
        timezone="Europe/Berlin",
        inputs={"day": "${{ schedule.date }}", "depth": 5},
        catch_up="all",
        overlap="allow",
        starts_at=1_767_222_000_000,
        ends_at=1_769_900_399_999,
    )


@pytest.mark.parametrize(
    ("schedule", "told"),
    [
        ('"0 0 2 * * ?"', "6 fields are cron with seconds; there are five here, without these: `0 2 * * *`"),
        ('"every 5 min"', "write it as `every`, not as `cron`: every 5 min"),
        ('{cron: "61 * * * *"}', "the minute, `61`"),
        ("{every: 10 min, cron: '@daily'}", "either cron, such as `30 2 * * *`, or every"),
        ("{every: 1 ms}", "is too often"),
        ("{timezone: Europe/Berln, cron: '@daily'}", "did you mean Europe/Berlin?"),
        ("{tz: UTC, cron: '@daily'}", "the time zone is `timezone: Europe/Berlin`"),
        ("{catchup: true, cron: '@daily'}", "`catch-up: latest`, `all` or `skip`"),
        ("{cron: '@daily', overlap: never}", "one of wait, skip, allow, replace is expected"),
        ("{cron: '@daily', catch-up: all, overlap: skip}", "contradict each other"),
        ("{cron: '@daily', from: tomorrow}", "`tomorrow` is no date or time"),
        ("{cron: '@daily', inputs: {x: 1}}", "the flow has no input `x`"),
        ("{cron: '@daily', inputs: {file: '${{ jobs.a }}'}}", "they ask for `jobs.a`; known here is `schedule`"),
        ("[{cron: '@daily'}]", "a flow has one schedule; add others by `mendflow schedules add NAME FLOW"),
        ("3", "`on.schedule` is a cron expression"),
    ],
)
def test_what_is_wrong_with_a_schedule_is_told(complaints: Complaints, schedule: str, told: str) -> None:  # DU-6
    text = f"inputs: {{file: 1}}\non: {{schedule: {schedule}}}\njobs: {{a: 'true'}}"
    found = complaints(text)
    assert len(found) == 1 and told in found[0], found


def test_an_input_that_nobody_gives_at_a_due_time_is_told(complaints: Complaints) -> None:  # DU-6
    [told] = complaints("inputs: {day: {type: string}}\non: {schedule: '@daily'}\njobs: {a: 'true'}")
    assert "nobody gives the input `day` when a time is due" in told


def test_everything_that_is_wrong_is_told_at_once(complaints: Complaints) -> None:
    text = 'on: {files: {in: "s3://b/x", match: "*.[c"}, failure: {notify: "a b"}, schedule: "0 2 * *"}'
    assert len(complaints(text + REST)) == 5


def test_a_flow_in_python_has_the_same_triggers(read: Reader) -> None:
    on: dict[str, Any] = {"files": {"in": "drop:incoming", "match": "*.csv"}, "failure": {"notify": "pager"}}

    @flow(on=on)
    def count(file: Path) -> Any:
        return shell("wc -l < in.csv", inputs={"in.csv": file})

    written = read(f'{FILE}on: {{files: {{in: drop:incoming, match: "*.csv"}}, failure: {{notify: pager}}}}{REST}')
    assert count.build().triggers == written.triggers is not None

    @flow(on={"files": {"in": "drop:x"}, "schedule": "0 2 * *"})
    def nightly() -> Any:
        return shell("true")

    with pytest.raises(BadFlow) as caught:
        nightly.build()
    told = [(Path(each.file).name, each.message.partition(";")[0]) for each in caught.value.problems]
    assert told == [
        (Path(__file__).name, "no input of the flow takes the file"),
        (
            Path(__file__).name,
            "`0 2 * *` has 4 of the five fields of cron: minute, hour, day of the month, month, day of the week",
        ),
    ]


def test_files_of_two_folders_have_different_names_and_are_found_again() -> None:
    names = set()
    for folder in ("/data/in", "/data/other/in", "/data/a (b) [c] + d", "/data/über"):
        element = normalize_element(folder_element(folder))
        name = name_at(element, "sub/a.csv")
        assert place_of(element, name) == f"file://{folder}/sub/a.csv"
        names.add(name)
    assert len(names) == 4
    assert folder_element("/data/in/") == folder_element("/data/in")


def test_names_that_are_made_of_long_names_are_short_enough_and_differ() -> None:
    made = {trigger_name("f" * 100), trigger_name("f" * 99), trigger_name("f" * 97)}
    assert len(made) == 3 and all(len(name) <= 100 for name in made)


def test_an_input_of_files_gets_a_list_with_the_one() -> None:
    arrival = FileArrival(input="samples", element="drop")
    [gathering] = flow_watch("count", arrival, takes_list=True, owner="me").data_set.gatherings
    assert gathering.inputs == {"samples": ["${{ file }}"]} and gathering.count == 1
