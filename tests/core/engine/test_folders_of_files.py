"""An input whose path ends with `/` takes a list of files: merge jobs do not know before how many there are."""  # PJ-9

import pytest

from mendflow.core.engine.messages import StageFiles, SubmitJob
from mendflow.core.model.flow import JobActivity
from mendflow.core.model.jobs import JobSpec, Outcome
from mendflow.core.model.values import FileRef, Value
from tests.core.engine.world import Play, started


def kept(name: str, content: str = "0") -> FileRef:
    return FileRef(sha256=content * 64, bytes=3, name=name)


def merging(files: list[Value]) -> Play:
    return started(JobActivity(name="merge", command="cat parts/*", inputs={"parts/": files}))


def submitted(play: Play) -> JobSpec:
    order = play.out[play.serial("merge")]
    assert isinstance(order, SubmitJob), order
    return order.spec


def test_each_file_of_a_list_stands_in_the_folder_under_its_own_name() -> None:  # PJ-9
    spec = submitted(merging([kept("a.dat").as_value(), kept("b.dat", "1").as_value()]))
    assert spec.inputs == {"parts/a.dat": kept("a.dat"), "parts/b.dat": kept("b.dat", "1")}


@pytest.mark.parametrize(
    ("names", "stand"),
    [
        (["a", "a", "..", "x/../../y"], ["0-a", "1-a", "2-..", "3-y"]),
        (["out"] * 12, [f"{number:02}-out" for number in range(12)]),
        (["a", None, "a"], ["0-a", "2-a"]),
        (["a", None, "b"], ["a", "b"]),
        (["1-a", "a", "a"], ["0-1-a", "1-a", "2-a"]),
    ],
)
def test_files_of_one_name_get_numbers_that_sort_as_the_list(names: list[str | None], stand: list[str]) -> None:  # DU-3
    spec = submitted(merging([kept(name).as_value() if name else None for name in names]))
    assert list(spec.inputs) == sorted(spec.inputs) == [f"parts/{name}" for name in stand]


def test_one_file_in_a_folder_stands_there_under_its_name() -> None:
    job = JobActivity(name="merge", command="cat parts/*", inputs={"parts/": kept("a.dat").as_value()})
    assert submitted(started(job)).inputs == {"parts/a.dat": kept("a.dat")}


def test_two_inputs_at_one_place_are_refused() -> None:
    job = JobActivity(
        name="merge", command="x", inputs={"p/": [kept("a").as_value()], "p/a": kept("a", "1").as_value()}
    )
    fault = started(job).ended.fault
    assert fault is not None and "two of its inputs are to stand at p/a" in fault.message


def test_files_of_a_list_may_have_to_be_brought_first() -> None:  # FM-6
    play = merging(["lfn:/store/a.dat", kept("b").as_value()])
    order = play.out[play.serial("merge")]
    assert isinstance(order, StageFiles)
    assert order.files == {"parts/a.dat": "lfn:/store/a.dat"}
    play.finish(order.serial, Outcome(files={"parts/a.dat": kept("a.dat")}))
    assert list(submitted(play).inputs) == ["parts/b", "parts/a.dat"]


def test_an_empty_list_is_no_file() -> None:
    assert submitted(merging([])).inputs == {}


def test_a_list_where_one_file_is_wanted_is_refused() -> None:
    fault = started(JobActivity(name="merge", command="true", inputs={"parts": [kept("a").as_value()]})).ended.fault
    assert fault is not None
    assert fault.message.endswith(
        "parts is a list of 1 files, and one file stands there; write `parts/` to have a folder of them"
    )


@pytest.mark.parametrize("value", [[{"id": 1}, {"id": 2}], {"a": [1]}, [], 3, 2.5, True])
def test_a_value_that_is_no_file_is_written_where_one_stands(value: object) -> None:
    play = started(JobActivity(name="merge", command="true", inputs={"rows.json": value, "b": kept("b").as_value()}))
    order = play.out[play.serial("merge")]
    assert isinstance(order, StageFiles)
    assert (order.files, order.data) == ({}, {"rows.json": value})
    play.finish(order.serial, Outcome(files={"rows.json": kept("rows.json")}))
    assert sorted(submitted(play).inputs) == ["b", "rows.json"]


@pytest.mark.parametrize(
    ("value", "flaw"),
    [
        ([kept("a").as_value(), 3], "is a list with files in it, and one file stands there"),
        ({"a": [kept("a").as_value()]}, "is a map with files in it, and one file stands there"),
    ],
)
def test_a_value_with_files_in_it_is_not_written(value: object, flaw: str) -> None:
    fault = started(JobActivity(name="merge", command="true", inputs={"rows.json": value})).ended.fault
    assert fault is not None and flaw in fault.message


def test_a_folder_that_is_given_nothing_is_told_in_words() -> None:
    fault = started(JobActivity(name="merge", command="true", inputs={"parts/": "${{ null }}"})).ended.fault
    assert fault is not None and "nothing is given for the folder parts/ of its inputs" in fault.message


def test_a_folder_for_which_no_file_is_given_is_there_all_the_same() -> None:  # FM-6
    assert submitted(merging([])).folders == ("parts/",)
    assert submitted(merging([None])).folders == ("parts/",)
    assert submitted(merging([kept("a.dat").as_value()])).folders == ()


def test_the_job_s_own_folder_takes_a_list_of_files() -> None:  # PJ-9
    files: list[Value] = [kept("a.dat").as_value(), kept("b.dat", "1").as_value()]
    spec = submitted(started(JobActivity(name="merge", command="cat *", inputs={"./": files})))
    assert spec.inputs == {"a.dat": kept("a.dat"), "b.dat": kept("b.dat", "1")}
    empty = submitted(started(JobActivity(name="merge", command="cat *", inputs={"./": []})))
    assert (empty.inputs, empty.folders) == ({}, ()), "it is there anyway"


def test_a_file_of_a_list_and_another_at_one_place_in_the_job_s_own_folder_are_refused() -> None:
    given: dict[str, Value] = {"./": [kept("a").as_value()], "a": kept("a", "1").as_value()}
    fault = started(JobActivity(name="merge", command="x", inputs=given)).ended.fault
    assert fault is not None and "two of its inputs are to stand at a" in fault.message
