"""Failures told apart, and those of one cause recognised."""

import pytest

from mendflow.core.model.faults import Category, Fault
from mendflow.core.recovery.classification import BY_CATEGORY, FAMILIES, classify
from mendflow.core.recovery.signature import normalize_message, signature


def fault(category: Category, **more: object) -> Fault:
    return Fault(**{"name": "f", "category": category, "message": "m", **more})  # type: ignore[arg-type]  # the fields come from a table


@pytest.mark.parametrize(
    ("category", "family", "recoverable", "stage"),
    [
        # FM-12: submission: network down, scheduler down, scheduler refusing
        (Category.NETWORK, "submission", True, "submission"),
        (Category.SCHEDULER_DOWN, "submission", True, "submission"),
        (Category.REFUSED, "submission", True, "submission"),
        # FM-12: execution: resource or data unavailable, wrong input, exception in the job, output staging, clean-up
        (Category.RESOURCE, "execution", True, "execution"),
        (Category.DATA, "execution", True, "stage-in"),
        (Category.INPUT, "execution", False, "execution"),
        (Category.JOB, "execution", False, "execution"),
        (Category.MEMORY, "execution", True, "execution"),
        (Category.TIME, "execution", True, "execution"),
        (Category.OUTPUT, "execution", False, "stage-out"),
        (Category.CLEANUP, "execution", True, "cleanup"),
        (Category.CANCELLED, "other", False, ""),
        (Category.FLOW, "other", False, ""),
    ],
)
def test_every_category_has_its_family_and_its_reason(
    category: Category, family: str, recoverable: bool, stage: str
) -> None:
    found = classify(fault(category))
    assert (found.category, found.family, found.recoverable, found.stage) == (category, family, recoverable, stage)
    assert found.type == "f" and found.reason


def test_no_category_is_forgotten() -> None:
    assert set(FAMILIES) == set(BY_CATEGORY) == set(Category)


@pytest.mark.parametrize(
    ("said", "recoverable"),
    [
        # FM-12 AD-3: what a fault says of itself goes before its category
        (fault(Category.JOB, exit_code=1), False),
        (fault(Category.JOB, exit_code=75), True),
        (fault(Category.JOB, signal=9), True),
        (fault(Category.JOB, signal=15), True),
        (fault(Category.JOB, signal=11), False),
        (fault(Category.JOB, signal=6), False),
        (fault(Category.JOB, data={"type": "ConnectionRefusedError", "types": ["ConnectionError", "OSError"]}), True),
        (fault(Category.JOB, data={"type": "builtins.TimeoutError"}), True),
        (fault(Category.JOB, data={"type": "ValueError", "types": ["Exception"]}), False),
        (fault(Category.JOB, data="no map"), False),
        (fault(Category.JOB, data={"types": "no list"}), False),
        (fault(Category.OUTPUT, name="notKept"), True),
        (fault(Category.OUTPUT, name="missingOutput"), False),
        (fault(Category.OUTPUT, name="notPublished", data={"passing": True}), True),
        (fault(Category.OUTPUT, name="notPublished", data={"passing": False}), False),
        (fault(Category.OUTPUT, name="notPublished", data={"element": "tape"}), False),
        (fault(Category.INPUT, exit_code=75), False),
        (fault(Category.RESOURCE, data={"runtime": "podman"}), True),
        (fault(Category.RESOURCE, data={"runtime": "podman", "lasting": True}), False),
    ],
)
def test_the_dispatcher_sends_a_fault_to_recovery_or_to_compensation(said: Fault, recoverable: bool) -> None:
    assert classify(said).recoverable is recoverable


def test_the_stage_that_a_fault_names_is_believed() -> None:
    assert classify(fault(Category.JOB, stage="start")).stage == "start"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("it ended after 3 s", "it ended after 41 s"),
        ("took 1.5 GB of 1 GB", "took 2,048 GB of 1e3 GB"),
        ("no such file: /data/a/b.csv", "no such file: /scratch/x-1/c.csv"),
        ("cannot open 'left.txt'", "cannot open 'right.txt'"),
        ('module "numpy" is missing', 'module "scipy" is missing'),
        ("lost on pilot p-7f3k", "lost on pilot p-0a1b"),
        ("job align-7f3k/12: lease 3 is over", "job align-9x2m/7~2: lease 4 is over"),
        ("the file deadbeef1234 arrived damaged", "the file 0badcafe9876 arrived damaged"),
        ("segfault at 0x7f00 ip 0x40", "segfault at 0xdead ip 0xbeef"),
        ("http://a.example/x?y=1 says 503", "http://b.example:80/z says 503"),
        ("10.0.0.1:80 refused", "192.168.7.9:8080 refused"),
        ("at 2024-01-02 03:04:05 it ended", "at 2025-11-12T13:14:15.5Z it ended"),
        ("node12 is full", "node7 is full"),
        ("request 123e4567-e89b-12d3-a456-426614174000 failed", "request 00000000-1111-2222-3333-444444444444 failed"),
        ("two\n   lines", "two lines"),
        ("\x1b[31mred\x1b[0m", "red"),
    ],
)
def test_the_same_cause_has_the_same_text(one: str, other: str) -> None:
    assert normalize_message(one) == normalize_message(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("the disk is full", "the line is down"),
        ("no such file: /a/b", "cannot write: /a/b"),
        ("read-only file system", "read error on file system"),
        ("added to the queue", "dead in the queue"),
        ("it doesn't run, so it can't end", "it doesn't run, and so it can't end"),
    ],
)
def test_another_cause_has_another_text(one: str, other: str) -> None:
    assert normalize_message(one) != normalize_message(other)


def test_a_signature_tells_type_category_and_exit_code_apart() -> None:
    plain = fault(Category.JOB, message="it ended with exit code 3", exit_code=3)
    assert signature(plain) == "job/f: it ended with exit code 3"
    others = [
        fault(Category.MEMORY, message="it ended with exit code 3", exit_code=3),
        fault(Category.JOB, message="it ended with exit code 3", exit_code=4),
        fault(Category.JOB, message="it ended with exit code 3", name="g", exit_code=3),
        fault(Category.JOB, message="it ended with exit code 3", signal=9),
    ]
    assert len({signature(each) for each in [plain, *others]}) == 5


def test_a_message_without_end_has_a_signature_of_bounded_length() -> None:
    assert len(normalize_message("word " * 10_000)) <= 300
    assert len(normalize_message("'" * 100_000)) <= 300
