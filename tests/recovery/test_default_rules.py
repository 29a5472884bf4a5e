"""The default rules as they ship: what they conclude, from whatever context, and that nothing goes on for ever."""

import copy
from pathlib import Path
from typing import Any

import pytest

import mendflow
from mendflow.core.model.faults import AttemptStage, Category, Fault
from mendflow.core.model.repair import ExceptionType
from mendflow.core.model.rules import DEFAULT_RULES, RuleSet
from mendflow.core.recovery.classification import classify
from mendflow.core.rules.evaluation import compile_rules, context_lookup
from mendflow.formats.rules import load_rules, read_rules, write_rules

FILE = Path(mendflow.__file__).parent / "defaults" / "rules.yaml"
RULES: RuleSet = load_rules(FILE)
COMPILED = compile_rules(RULES)
LARGEST = {"cpus": 8.0, "memory_bytes": 64_000, "disk_bytes": 1_000_000, "gpus": 0}

JOB: dict[str, Any] = {
    "id": "c-1/1",
    "generation": 1,
    "level": 0,
    "host": "ant",
    "hosts": ["ant"],
    "site_asked": "",
    "memory_bytes": 2_000,
    "peak_bytes": 1_000,
    "memory_max_bytes": 0,
    "wall_ms": 60_000,
    "wall_max_ms": 0,
    "sources_left": 0,
    "avoid_hosts": [],
    "domain": "",
    "stage": "execution",
    "final": True,
}


def context(fault: Fault, **job: Any) -> dict[str, Any]:
    """What the exception service would know of a failed job in a quiet world of three hosts."""
    told = classify(fault)
    return {
        "case": {"id": "c-1", "flow": "f", "undoable": 0, "depth": 0},
        "item": {"id": "work", "name": "work", "caught": False},
        "job": {**JOB, **job},
        "fault": {
            "name": fault.name,
            "category": fault.category.value,
            "family": told.family,
            "recoverable": told.recoverable,
            "message": fault.message,
            "exit_code": fault.exit_code,
            "signal": fault.signal,
        },
        "history": {
            "case": {"exceptions": 1, "of_task": 1},
            "host": {"jobs_lately": 1},
            "cause": {"hosts_lately": 1, "jobs_lately": 1},
        },
        "site": {"largest": LARGEST},
        "capacity": {"hosts": 3, "domains": [], "largest": LARGEST, "levels": 3},
    }


def concluded(known: dict[str, Any]) -> str:
    found = COMPILED.judge(ExceptionType.ABORT, "work", context_lookup(known)).conclusion
    return found.exlet if found is not None else ""


def fault(category: Category, name: str = "", **more: Any) -> Fault:
    return Fault(name=name or category.value, category=category, message="it failed", **more)


EXIT_1 = fault(Category.JOB, "exitCode", exit_code=1)


@pytest.mark.parametrize(
    ("what", "does"),
    [
        (fault(Category.MEMORY), "more-memory"),
        (fault(Category.TIME), "more-time"),
        (fault(Category.RESOURCE, "lost-too-often"), "elsewhere"),
        (fault(Category.CLEANUP, "notCleaned"), "elsewhere"),
        (fault(Category.DATA, "missingInput"), "again"),
        (fault(Category.NETWORK, "unreachable", stage=AttemptStage.SUBMISSION), "later"),
        (fault(Category.SCHEDULER_DOWN), "later"),
        (fault(Category.REFUSED), "later"),
        (fault(Category.OUTPUT, "notKept"), "again"),
        (fault(Category.OUTPUT, "notPublished", data={"passing": True}), "later"),
        (fault(Category.OUTPUT, "notPublished", data={"passing": False}), ""),
        (fault(Category.JOB, "exitCode", exit_code=75), "later"),
        (fault(Category.JOB, "signal", signal=15), "later"),
        (fault(Category.OUTPUT, "missingOutput"), ""),
        (fault(Category.INPUT, "badCommand"), ""),
        (EXIT_1, ""),
        (fault(Category.JOB, "ValueError"), ""),
        (fault(Category.JOB, "signal", signal=11), ""),
        (fault(Category.CANCELLED), ""),
        (fault(Category.FLOW, "rejected"), ""),
    ],
    ids=lambda each: f"{each.category.value}-{each.name}" if isinstance(each, Fault) else each or "nothing",
)
def test_the_first_failure_of_each_kind(what: Fault, does: str) -> None:
    # AD-3 FM-12: recoverable ones are recovered, a job that failed by itself is left to the flow at once
    assert concluded(context(what)) == does


def test_every_kind_of_failure_is_among_them() -> None:
    for category in Category:
        concluded(context(fault(category)))
    assert {category for category in Category if concluded(context(fault(category)))} == {
        *(Category.MEMORY, Category.TIME, Category.RESOURCE, Category.CLEANUP, Category.DATA),
        *(Category.NETWORK, Category.SCHEDULER_DOWN, Category.REFUSED),
    }


@pytest.mark.parametrize("category", list(Category))
def test_nothing_goes_on_for_ever(category: Category) -> None:
    """However the world is: at these bounds every failure is given up, or left to the flow."""
    known = context(fault(category), generation=10, level=3, memory_bytes=1, sources_left=5)
    known["capacity"]["domains"] = ["north", "south"]
    assert concluded(known) in ("give-up", "")


@pytest.mark.parametrize("levels", [1, 3, 5])
def test_what_may_pass_waits_in_as_many_levels_as_there_are(levels: int) -> None:
    for level, expected in ((0, "later"), (levels - 1, "later"), (levels, "give-up")):
        known = context(fault(Category.NETWORK), generation=level + 4, level=level)
        known["capacity"]["levels"] = levels
        assert concluded(known) == expected


def test_memory_is_not_asked_for_that_no_pilot_has() -> None:
    assert concluded(context(fault(Category.MEMORY), memory_bytes=63_999)) == "more-memory"
    assert concluded(context(fault(Category.MEMORY), memory_bytes=64_000)) == "give-up"


def test_memory_is_bounded_by_the_site_that_the_job_asked_for() -> None:
    known = context(fault(Category.MEMORY), memory_bytes=10_000, site_asked="north")
    known["site"] = {"largest": {**LARGEST, "memory_bytes": 10_000}}
    assert concluded(known) == "give-up"


def test_a_bound_of_what_is_learned_is_kept() -> None:  # LE-2
    for category, asked, bound, does in (
        (Category.MEMORY, "memory_bytes", "memory_max_bytes", "more-memory"),
        (Category.TIME, "wall_ms", "wall_max_ms", "more-time"),
    ):
        assert concluded(context(fault(category), **{asked: 7_999, bound: 8_000})) == does
        assert concluded(context(fault(category), **{asked: 8_000, bound: 8_000})) == "give-up"


def test_time_is_doubled_three_times_at_most() -> None:
    assert concluded(context(fault(Category.TIME), generation=3)) == "more-time"
    assert concluded(context(fault(Category.TIME), generation=4)) == "give-up"


def test_another_replica_comes_before_waiting_and_each_is_tried_once() -> None:
    # FM-8c
    missing = fault(Category.DATA, "missingInput")
    assert concluded(context(missing, sources_left=2)) == "another-replica"
    assert concluded(context(missing, sources_left=2, generation=2)) == "another-replica"
    assert concluded(context(missing, sources_left=2, generation=3)) == "later"


@pytest.mark.parametrize("category", [Category.NETWORK, Category.SCHEDULER_DOWN, Category.REFUSED])
def test_another_domain_comes_before_waiting(category: Category) -> None:
    # FM-8: a submission that fails is made elsewhere
    known = context(fault(category))
    known["capacity"]["domains"] = ["north"]
    assert concluded(known) == "another-domain"
    known["job"]["generation"] = 2
    assert concluded(known) == "later"


@pytest.mark.parametrize("category", [Category.NETWORK, Category.SCHEDULER_DOWN, Category.REFUSED])
def test_a_job_for_any_domain_is_routed_again_at_once_and_not_for_ever(category: Category) -> None:
    # FM-4, FM-8: refused there, lost there
    known = context(fault(category), domain_asked="any")
    assert concluded(known) == "route-again"
    known["job"]["generation"] = 6
    assert concluded(known) != "route-again"
    assert concluded(context(fault(category), domain_asked="south")) == "later"


@pytest.mark.parametrize("stage", ["polling", "notification"])
def test_an_answer_that_is_lost_is_asked_for_again_and_the_job_left_alone(stage: str) -> None:
    # FM-8: re-poll, re-register
    known = context(fault(Category.NETWORK), stage=stage)
    assert concluded(known) == "ask-again"
    known["history"]["case"]["of_task"] = 50
    assert concluded(known) == "later"


def test_files_that_did_not_travel_are_sent_again_once_before_anybody_waits() -> None:
    # FM-8a
    assert concluded(context(fault(Category.DATA, "missingInput"), generation=2)) == "later"
    assert concluded(context(fault(Category.OUTPUT, "notKept"), generation=2)) == "later"


def test_a_job_that_was_lost_with_its_pilot_is_left_to_the_queue() -> None:
    assert concluded(context(fault(Category.RESOURCE, "lost"), final=False)) == ""


@pytest.mark.parametrize("name", ["diskFull", "cannotStart", "slotDied"])
def test_a_place_that_is_broken_and_idle_does_not_get_the_job_again(name: str) -> None:
    known = context(fault(Category.RESOURCE, name), final=False)
    assert concluded(known) == "elsewhere"
    known["capacity"]["hosts"] = 1
    assert concluded(known) == ""


def test_an_attempt_that_the_jobs_own_retries_follow_is_left_to_them() -> None:
    for category in set(Category) - {Category.MEMORY, Category.TIME}:
        assert concluded(context(fault(category, "lost"), final=False)) == ""


def test_too_little_memory_or_time_is_mended_at_once_whatever_retries_are_left() -> None:
    assert concluded(context(fault(Category.MEMORY), final=False)) == "more-memory"
    assert concluded(context(fault(Category.TIME), final=False)) == "more-time"


def test_where_there_is_one_host_only_nobody_is_sent_elsewhere() -> None:
    known = context(fault(Category.RESOURCE))
    known["capacity"]["hosts"] = 1
    assert concluded(known) == "later"


def bad_host() -> dict[str, Any]:
    known = context(EXIT_1)
    known["history"] = {"host": {"jobs_lately": 3}, "cause": {"hosts_lately": 1, "jobs_lately": 3}}
    return known


def test_a_host_that_fails_several_different_jobs_is_avoided() -> None:
    assert concluded(bad_host()) == "elsewhere"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("history", "host", "jobs_lately"), 2),
        (("history", "cause", "hosts_lately"), 2),
        (("capacity", "hosts"), 1),
        (("job", "generation"), 3),
        (("job", "avoid_hosts"), ["bee", "elk"]),
    ],
    ids=["few-jobs", "seen-elsewhere-too", "no-other-host", "tried-elsewhere", "all-others-avoided"],
)
def test_a_host_is_not_blamed_for_what_is_the_jobs_own(path: tuple[str, ...], value: Any) -> None:
    known = bad_host()
    inner = known
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = value
    assert concluded(known) == ""


def test_what_cannot_be_recovered_is_undone_if_the_case_has_something_to_undo() -> None:
    # AD-3: unrecoverable -> compensation
    known = context(EXIT_1)
    known["case"]["undoable"] = 2
    assert concluded(known) == "give-up"


def test_a_fault_that_the_flow_handles_is_left_to_the_flow() -> None:
    known = context(EXIT_1)
    known["case"]["undoable"], known["item"]["caught"] = 2, True
    assert concluded(known) == ""


def test_calls_and_tasks_that_fail_are_left_to_the_flow() -> None:
    """Whatever can be done about them was done where they failed."""
    for category in Category:
        assert concluded(context(fault(category), id="")) == ""


def test_every_rule_has_its_reason_and_a_cornerstone_that_it_decides() -> None:
    # EX-7
    for type, trees in RULES.trees.items():
        for tree in trees.values():
            for rule in tree.rules.values():
                assert len(rule.note) > 40, rule.id
                assert rule.cornerstone is not None
                known = context_lookup(copy.deepcopy(rule.cornerstone))
                found = COMPILED.judge(type, "any", known).conclusion
                if rule.exlet:
                    assert found is not None and found.rule == rule.id
                else:
                    assert found is None, "a rule without an exlet leaves the failure to the flow"


def test_they_are_rules_like_any_other_that_can_be_written_and_read_again() -> None:
    # EX-12
    assert RULES.name == DEFAULT_RULES
    again = read_rules(write_rules(RULES))
    assert again.trees == RULES.trees
    assert again.exlets.keys() == RULES.exlets.keys()
