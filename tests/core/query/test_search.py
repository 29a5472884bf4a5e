"""What a search may say, what of it a store is asked, and what is refused with the place and the reason."""  # JS-6

import re
from typing import Any

import pytest

from mendflow.core.model.errors import RequestError
from mendflow.core.query.case_text import CHARS_MAX, HELD_FAILURES, case_text
from mendflow.core.query.literals import InvalidSearch
from mendflow.core.query.search import Requirement, Search
from mendflow.core.query.search_fields import CASES, ITEMS, JOBS

NOW = 1_700_000_000_000
JOB = {
    "id": "align-1/1",
    "case": "align-1",
    "spec": {"item": "align[1]", "owner": "ann", "resources": {"memory_bytes": 2_000_000_000}},
    "name": "align",
    "state": "failed",
    "created_at": NOW - 3_600_000,
    "fence": 3,
    "failures": 1,
    "history": [{"fence": 3, "pilot": "p", "host": "node7", "granted_at": NOW - 60_000}],
    "outcome": {"fault": {"name": "oom", "category": "memory", "message": "out of memory"}, "exit_code": 137},
    "finished_at": 0,
}


def holds(text: str) -> bool:
    return Search(JOBS, text, NOW).holds(JOB)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "owner == 'ann' && attempts > 2",
        'owner == "ann" || attempts > 200',
        "flow == 'align' && host == 'node7'",
        "priority == 0 && resources.cpus == 1.0",
        "created > ago('2h') && created < ago('30 min')",
        "created > '2023-11-14' && created < '2023-11-15T00:00:00Z'",
        "resources.memory >= '2GB' && resources.memory < '2GiB'",
        "fault.category in ['memory', 'time'] && exit_code == 137",
        "fault.message.contains('memory') && name.startsWith('al') && item.matches('.*[[]1[]]')",
        "!(state == 'completed') && finished == null && pilot == null",
        "'10m' > runtime || started > ago('2m')",
    ],
)
def test_a_condition_holds_as_people_mean_it(text: str) -> None:
    assert holds(text)


def test_what_cannot_be_worked_out_is_no_fulfilment() -> None:
    assert not holds("runtime > '1s'")
    assert not holds("!(runtime > '1s')")


@pytest.mark.parametrize(
    ("text", "position", "part"),
    [
        ("ownr == 'x'", 1, "did you mean `owner`?"),
        ("owner == 'x' && colour == 'red'", 17, "known are id, case"),
        ("fault.categry == 'x'", 1, "did you mean `fault.category`?"),
        ("owner.first == 'x'", 1, "`owner` is text, and has no `first`"),
        ("attempts > 'many'", 1, "`attempts` is a number, and cannot be compared with 'many'"),
        ("owner == 3", 1, "`owner` is text, and cannot be compared with a number"),
        ("attempts in [1, 'two']", 1, "cannot be compared with 'two'"),
        ("attempts > null", 1, "cannot be compared with null"),
        ("created > 'yesterday'", 11, "'yesterday' is not a time"),
        ("created > ago('2h') && runtime > 'long'", 34, "'long' is not a duration"),
        ("created > ago(2)", 11, "wants a duration in quotes"),
        ("created > ago('soon')", 15, "is not a duration"),
        ("attempts", 1, "neither true nor false"),
        ("attempts + 1", 0, "does not give true or false"),
        ("'x'", 0, "must give true or false"),
        ("owner ==", 9, "ends too early"),
        ("created > ago('2h') &&& true", 23, ""),
        ("nope(owner)", 5, "nope"),
        ("owner == '" + "x" * 5000 + "'", 0, "at most 4000"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_place(text: str, position: int, part: str) -> None:
    with pytest.raises(InvalidSearch) as caught:
        Search(JOBS, text, NOW)
    assert part in caught.value.message
    assert caught.value.fields["position"] == position


def test_a_condition_that_turns_out_to_give_no_answer_is_a_mistake() -> None:
    with pytest.raises(RequestError, match="must give true or false"):
        holds("attempts > 2 ? owner : name")


@pytest.mark.parametrize(
    ("text", "needs"),
    [
        ("owner == 'a' && attempts > 2", [Requirement("spec.owner", "eq", "a"), Requirement("fence", "gt", 2)]),
        ("2 < attempts", [Requirement("fence", "gt", 2)]),
        ("owner == ''", [Requirement("spec.owner", "in", ["", None])]),
        ("name in ['a', 'b']", [Requirement("name", "in", ["a", "b"])]),
        ("state == 'available'", [Requirement("state", "in", ["available", "running", None])]),
        ("fault.category == 'memory'", [Requirement("state", "in", ["failed"])]),
        ("pilot != 'p'", [Requirement("pilot", "ne", "p")]),
        ("priority < 5", []),  # documents that leave it out have 0
        ("owner == 'a' || owner == 'b'", []),
        ("name < 'b'", []),
        ("attempts > 9007199254740993", []),
    ],
)
def test_a_store_is_asked_only_for_what_every_find_must_have(text: str, needs: list[Requirement]) -> None:
    assert list(Search(JOBS, text, NOW).needs) == needs


def test_the_columns_of_the_list_of_jobs_are_names_of_times() -> None:  # UI-1
    ended = {**JOB, "finished_at": NOW - 60_000}
    assert Search(JOBS, "submitted < ago('59m') && ended > ago('2m')", NOW).holds(ended)
    assert Search(JOBS, "ended == null", NOW).holds({**JOB, "finished_at": 0})


@pytest.mark.parametrize(
    ("text", "position", "advice"),
    [
        ("created == '2026-11-30'", 12, "write created >= '2026-11-30' && created < '2026-12-01'"),
        ("'2026-11-30' == ended", 1, "write ended >= '2026-11-30' && ended < '2026-12-01'"),
        ("attempts > 1 && created != '2026-11-30'", 28, "write !(created >= '2026-11-30' && created < '2026-12-01')"),
        ("created in ['2026-11-30']", 13, "write created >= '2026-11-30' && created < '2026-12-01'"),
    ],
)
def test_a_time_that_is_compared_with_a_day_as_if_it_were_one_is_refused(  # UI-1
    text: str, position: int, advice: str
) -> None:
    with pytest.raises(InvalidSearch, match=re.escape(advice)) as caught:
        Search(JOBS, text, NOW)
    assert caught.value.fields["position"] == position
    for fine in ("created >= '2026-11-30'", "'2026-11-30' < created", "created == '2026-11-30T08:00:00Z'"):
        Search(JOBS, fine, NOW)


def test_a_job_is_found_by_what_it_failed_by_however_that_is_written() -> None:  # UI-1
    fault = {"name": "exit", "message": "ValueError: Could not convert string to float"}
    failed = {**JOB, "outcome": {"fault": fault}}
    tried = {
        **JOB,
        "state": "available",
        "outcome": None,
        "history": [{"fault": {**fault, "message": "no route to host"}}],
    }
    for data, words in ((failed, "could not convert"), (failed, "align[1]"), (failed, "ann"), (tried, "no route")):
        assert Search(JOBS, f"text.contains('{words}')", NOW).holds(data)
    assert not Search(JOBS, "text.contains('convert')", NOW).holds(tried)


@pytest.mark.parametrize(
    ("item", "for_person"),
    [
        ({"kind": "job", "state": "waiting", "held": True}, True),
        ({"kind": "user-task", "state": "running"}, True),
        ({"kind": "user-task", "state": "completed"}, False),
        ({"kind": "job", "state": "waiting"}, False),
    ],
)
def test_an_item_is_for_a_person_that_failed_and_is_held_or_that_asks_somebody(  # UI-1
    item: dict[str, Any], for_person: bool
) -> None:
    assert Search(ITEMS, "for_person", NOW).holds(item) is for_person


def test_the_three_vocabularies_name_their_fields_once() -> None:
    for words in (JOBS, CASES, ITEMS):
        assert all(bool(each.field) != (each.made is not None) for each in words.names.values())


def test_a_state_is_one_of_those_that_there_are() -> None:
    with pytest.raises(InvalidSearch, match=r"at character 10: `state` is never 'runing'; did you mean `running`"):
        Search(JOBS, "state == 'runing'", NOW)
    with pytest.raises(InvalidSearch, match="available, running, completed, failed or waiting"):
        Search(JOBS, "'x' != state", NOW)
    with pytest.raises(InvalidSearch, match="suspended"):
        Search(CASES, "status in ['running', 'suspendid']", NOW)


def test_what_waits_is_found_by_either_word() -> None:
    waits = {**JOB, "state": "available"}
    for text in ("state == 'waiting'", "state == 'available'", "state in ['waiting']", "'waiting' == state"):
        search = Search(JOBS, text, NOW)
        assert search.holds(waits) and not search.holds(JOB)
        assert search.needs == Search(JOBS, text.replace("waiting", "available"), NOW).needs
    assert holds("last_pilot == 'p' && pilot == null")


@pytest.mark.parametrize(("text", "place"), [("name == 'x", 9), ("'; drop table jobs; --", 1), ('owner == "it', 10)])
def test_a_quote_that_never_ends_is_told_as_that(text: str, place: int) -> None:
    with pytest.raises(InvalidSearch, match=f"at character {place}: a quote starts here that never ends"):
        Search(JOBS, text, NOW)


CASE = {
    "id": "align-k3j9x2",
    "flow": "align",
    "owner": "ann",
    "inputs": {
        "sample": "NA12878",
        "lanes": [{"file": {"$file": "0a" * 32, "name": "Lane-1.fastq"}}, 7],
        "api_token": "swordfish",
    },
}


@pytest.mark.parametrize("word", ["na12878", "lane-1.fastq", "k3j9x2", "ann", "sample", "7"])
def test_a_case_is_found_by_what_people_remember_of_it(word: str) -> None:  # UI-1
    assert Search(CASES, f"text.contains('{word}')", NOW).holds(CASE)


def test_a_failed_case_is_found_by_words_of_its_failure() -> None:  # UI-1
    failed = {**CASE, "status": "failed", "fault": {"name": "exitCode", "message": "align: No Reference for HG38"}}
    search = Search(CASES, "text.contains('no reference') && text.contains('hg38')", NOW)
    assert search.holds(failed) and not search.holds({**failed, "status": "running"}) and not search.holds(CASE)


def test_a_case_in_which_something_waits_is_found_by_words_of_that_failure() -> None:  # UI-1
    held = {**CASE, "status": "running", HELD_FAILURES: ["exitCode align: No Reference for HG38"]}
    search = Search(CASES, "text.contains('no reference') && text.contains('hg38')", NOW)
    assert search.holds(held) and not search.holds({**CASE, "status": "running"})


def test_a_case_is_found_by_the_defaults_that_it_has() -> None:  # UI-1, SE-1
    case = {**CASE, "defaults": {"reference": "GRCh38", "db_password": "hunter"}}
    assert Search(CASES, "text.contains('grch38')", NOW).holds(case)
    assert not Search(CASES, "text.contains('hunter')", NOW).holds(case)
    assert not Search(CASES, "inputs.reference == 'GRCh38'", NOW).holds(case)


@pytest.mark.parametrize(
    "condition",
    ["text.contains('swordfish')", "inputs.api_token == 'swordfish'", "inputs.api_token.startsWith('s')"],
)
def test_no_condition_guesses_a_secret(condition: str) -> None:  # SE-1
    assert not Search(CASES, condition, NOW).holds(CASE)
    assert Search(CASES, "inputs.api_token == '(hidden)' && inputs.sample == 'NA12878'", NOW).holds(CASE)


def test_the_text_of_a_case_is_bounded() -> None:
    many = {"id": "a-1", "flow": "a", "inputs": {"rows": ["x" * 50] * 100_000, "note": "y" * 100_000}}
    assert len(case_text(many)) < 3 * CHARS_MAX
