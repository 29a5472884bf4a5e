"""What is an item's own is no part of the cause that its failure has in common with others."""

import pytest

from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.ids import CaseId, ItemId
from mendflow.core.model.jobs import JobSpec
from mendflow.core.model.repair import ExceptionEvent, ExceptionType
from mendflow.core.model.values import FileRef
from mendflow.core.recovery.own_words import own_words
from mendflow.core.recovery.signature import signature
from mendflow.services.recovery.decisions import signature_of


def cause(message: str, element: str = "") -> str:
    spec = JobSpec(item=ItemId("each.calibrate[0]"), element=element)
    fault = Fault(name="jobFailed", category=Category.JOB, message=message, exit_code=1)
    return signature(fault, own_words(spec, "stations"))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("dessau.csv", "halle.csv"),
        ("dessau", "halle"),
        ("station=dessau, month=may", "station=halle, month=june"),
        ("dessau.obs.csv", "halle.csv"),
    ],
)
def test_failures_of_different_elements_of_one_cause_are_one(one: str, other: str) -> None:  # EX-7
    told = "ERROR no calibration for station {0}: run make-calib {0} (exit code 1)"
    assert cause(told.format("dessau"), one) == cause(told.format("halle"), other)
    assert cause(told.format("dessau"), one) != cause(told.format("dessau").replace("run", "ask"), one)


def test_a_file_that_was_given_and_an_argument_are_the_items_own() -> None:  # EX-7
    def given(name: str) -> JobSpec:
        files = {
            "in.csv": FileRef(sha256="a" * 64, bytes=1, name=name),
            "clean.py": FileRef(sha256="b" * 64, bytes=1, name="clean.py"),
        }
        return JobSpec(item=ItemId("clean"), inputs=files, kwargs={"mode": "nightly", "deep": "true", "n": 3})

    assert own_words(given("dessau.csv")) == ("dessau.csv", "nightly", "dessau")


@pytest.mark.parametrize(
    ("element", "message"),
    [
        ("calibrate", "cannot calibrate anything"),
        ("stations", "the list of stations is empty"),
        ("true", "it is true that nothing came"),
        ("error", "an error of the reader"),
        ("hal", "halle and hal_le and hal-le are not known"),
        ("by", "killed by nobody"),
    ],
)
def test_what_is_common_or_part_of_a_longer_word_stays(element: str, message: str) -> None:  # EX-7
    assert cause(message, element) == cause(message)


def test_an_own_word_leaves_marks_paths_and_names_as_they_are() -> None:  # EX-7
    told = "cannot open '/x/dessau.json' of <path> at /y/dessau/path"
    assert cause(told, "dessau.csv") == cause(told.replace("dessau", "halle"), "halle.csv") == cause(told)


def test_an_engine_says_what_is_an_items_own_and_no_word_is_too_short_for_that() -> None:  # EX-7
    def told(station: str) -> str:
        fault = Fault(name="jobFailed", category=Category.JOB, message=f"a: no data of {station}")
        abort = ExceptionEvent(
            id="1", type=ExceptionType.ABORT, case=CaseId("c"), flow="f", fault=fault, own_words=(station, "", "a")
        )
        return signature_of(abort)

    assert told("dessau") == told("halle") == "job/jobFailed: a: no data of <value>"
