"""An input whose path ends with `/` takes a list of files: merge jobs do not know before how many there are."""  # PJ-9

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


def test_files_of_one_name_and_names_that_are_none_get_a_number() -> None:
    spec = submitted(merging([kept(name).as_value() for name in ("a", "a", "..", "x/../../y")]))
    assert list(spec.inputs) == ["parts/a", "parts/2-a", "parts/3-..", "parts/y"]


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
    assert fault is not None and "give a stored file or the path of one" in fault.message
