"""What a job becomes when it is submitted again with changes."""

from typing import Any

import pytest

from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.ids import ItemId
from mendflow.core.model.jobs import JobSpec, Resources, sources_of
from mendflow.core.model.values import FileRef
from mendflow.core.recovery.resubmission import with_changes

KEPT = FileRef(sha256="ab" * 32, bytes=1, name="t")
SPEC = JobSpec(
    item=ItemId("a"),
    command="true",
    env={"A": "1"},
    inputs={"t.csv": KEPT},
    replicas={"t.csv": ("http://one/t", "http://two/t")},
    resources=Resources(cpus=2.0, memory_bytes=100, avoid_hosts=("n1",)),
)


def change(**what: Any) -> JobSpec:
    nothing: dict[str, Any] = {"resources": {}, "env": {}, "avoid_hosts": (), "sources": {}, "transfer": {}}
    return with_changes(SPEC, **{**nothing, **what})


def test_nothing_changed_is_the_same_again() -> None:
    assert change() == SPEC


def test_wanted_resources_are_those_of_the_next_try() -> None:
    # FM-8
    needs = change(resources={"memory_bytes": 150.5, "cpus": 4, "site": "north", "wall_ms": None}).resources
    assert needs == Resources(cpus=4.0, memory_bytes=151, site="north", avoid_hosts=("n1",))


def test_the_place_that_is_wanted_may_be_another_at_the_next_try() -> None:
    needs = change(resources={"hosts": ["n2", "n3"], "system": "linux", "machine": "arm64"}).resources
    assert (needs.hosts, needs.system, needs.machine) == (("n2", "n3"), "linux", "arm64")
    with pytest.raises(InvalidRequest, match="machine cannot be 3"):
        change(resources={"machine": 3})


def test_hosts_to_avoid_gather_unless_they_are_set_anew() -> None:
    assert change(avoid_hosts=("n2", "n1", "", "n2")).resources.avoid_hosts == ("n1", "n2")
    assert change(resources={"avoid_hosts": []}).resources.avoid_hosts == ()
    assert change(resources={"avoid_hosts": ["n9"]}, avoid_hosts=("n2",)).resources.avoid_hosts == ("n9", "n2")


def test_environment_and_transfer_are_added_to() -> None:
    # FM-8b
    spec = change(env={"B": "2"}, transfer={"tries": 9})
    assert spec.env == {"A": "1", "B": "2"} and spec.transfer == {"tries": 9}


def test_another_replica_goes_first() -> None:
    # FM-8c
    spec = change(sources={"t.csv": "http://two/t"})
    assert sources_of(spec, "t.csv") == ("http://two/t", "http://one/t")


@pytest.mark.parametrize(
    ("what", "says"),
    [
        ({"resources": {"memory_bytes": -1}}, "memory_bytes is -1"),
        ({"resources": {"memory_bytes": "2 parsecs"}}, "it must be a number"),
        ({"resources": {"memory_bytes": True}}, "it must be a number"),
        ({"resources": {"memory_bytes": float("nan")}}, "it must be a number"),
        ({"resources": {"cpus": 1e30}}, "from 0 to 2"),
        ({"resources": {"memory": 5}}, "memory cannot be 5"),
        ({"resources": {"site": 5}}, "site cannot be 5"),
        ({"resources": {"avoid_hosts": "n1"}}, "avoid_hosts cannot be 'n1'"),
        ({"sources": {"u.csv": "http://x"}}, "a has no input u.csv; its inputs are: t.csv"),
    ],
)
def test_a_change_that_makes_no_sense_is_refused(what: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidRequest, match=says):
        change(**what)
