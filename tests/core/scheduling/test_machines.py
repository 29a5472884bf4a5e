"""Jobs that are bound to hosts, systems or kinds of machines."""

import pytest

from mendflow.core.model.ids import CaseId, ItemId, JobId, PilotId
from mendflow.core.model.jobs import Job, JobSpec, Resources
from mendflow.core.model.platforms import MACHINES, machine_of, suits
from mendflow.core.model.sites import BatchSettings, PilotOffer, Site
from mendflow.core.model.sync import Capacity
from mendflow.core.scheduling import ready_jobs
from mendflow.core.scheduling.explanations import PilotFacts, why_waiting
from mendflow.core.scheduling.offer import Offer
from mendflow.core.scheduling.queue import JobQueue
from mendflow.core.scheduling.site_fit import missing_for

NOW = 1_700_000_000_000


def capacity(system: str, machine: str) -> Capacity:
    return Capacity(slots=8, cpus=8, memory_bytes=8, disk_bytes=8, system=system, machine=machine)


def pilot(host: str, system: str = "linux", machine: str = "x86_64") -> Offer:
    has = capacity(system, machine)
    return Offer(cpus=8, memory_bytes=8, disk_bytes=8, host=host, pilot=PilotId(f"p-{host}"), whole=has)


PICKY = {
    "here": Resources(hosts=("n1", "n2")),
    "there": Resources(hosts=("n2",), avoid_hosts=("n1",)),
    "mac": Resources(system="darwin"),
    "arm": Resources(machine="arm"),
    "x86": Resources(machine="x86", system="linux"),
}


@pytest.mark.parametrize(
    ("offer", "taken"),
    [
        (pilot("n1"), {"here", "x86"}),
        (pilot("n2"), {"here", "there", "x86"}),
        (pilot("n3"), {"x86"}),
        (pilot("n3", machine="x86_32"), {"x86"}),
        (pilot("n3", "darwin", "arm64"), {"mac", "arm"}),
        (pilot("n3", "", ""), set()),
    ],
)
def test_a_job_goes_only_to_machines_that_it_may_go_to(offer: Offer, taken: set[str]) -> None:  # FM-2
    queue = JobQueue()
    for name, needs in PICKY.items():
        queue.add(JobId(name), needs, 0, NOW)
    assert {each.first for each in queue.waiting([offer]) if each.has_pilot} == taken
    assert set(queue.take(offer, 10, NOW)) == taken


def test_machines_count_too_where_jobs_are_gathered_roughly() -> None:
    queue = JobQueue()
    for number in range(2 * ready_jobs.EXACT_MAX):
        queue.add(JobId(f"j{number}"), Resources(memory_bytes=0, wall_ms=number + 1, hosts=("n1",)), 0, NOW + number)
    assert queue.take(pilot("n2"), 1000, NOW) == []
    taken: list[JobId] = []
    while got := queue.take(pilot("n1"), 8, NOW):
        taken += got
    assert len(taken) == 2 * ready_jobs.EXACT_MAX


def facts(host: str, system: str, machine: str) -> PilotFacts:
    return PilotFacts(
        id=PilotId("p"),
        host=host,
        capacity=capacity(system, machine),
        cpus_free=8,
        memory_free_bytes=8,
        disk_free_bytes=8,
    )


@pytest.mark.parametrize(
    ("needs", "said"),
    [
        (Resources(hosts=("n1", "n2")), "it is bound to n1, n2"),
        (Resources(system="aix"), "it needs aix"),
        (Resources(machine="sparc"), "it needs a machine of the kind sparc"),
    ],
)
def test_it_is_told_why_no_machine_suits_a_job(needs: Resources, said: str) -> None:  # FM-2
    job = Job(id=JobId("c/1"), case=CaseId("c"), spec=JobSpec(item=ItemId("i"), command="x", resources=needs))
    why = why_waiting(job, [facts("n9", "linux", "x86_64")], 0, NOW)
    assert said in why.sentence and "no pilot can take it" in why.sentence
    assert why.facts == ["p on n9 runs on linux x86_64"]


def test_a_site_is_asked_for_no_pilots_of_another_kind() -> None:
    came = [PilotOffer(at=1, capacity=capacity("linux", "x86_64"), host="n1")]
    here, cluster = Site(name="a"), Site(name="b", batch=BatchSettings(kind="slurm"))
    assert "it needs darwin" in missing_for(here, Resources(system="darwin"), came)
    assert "it is bound to n7" in missing_for(here, Resources(hosts=("n7",)), came)
    assert not missing_for(cluster, Resources(hosts=("n7",)), came), "the next pilot may come to that host"
    assert missing_for(cluster, Resources(machine="ia64"), came)


@pytest.mark.parametrize(
    ("told", "word"),
    [("x86_64", "x86_64"), ("AMD64", "x86_64"), ("i686", "x86_32"), ("aarch64", "arm64"), ("armv7l", "arm"),
     ("ppc64le", "powerpc"), ("sun4v", "sparc"), ("loongarch64", "loongarch64")],
)  # fmt: skip
def test_a_machine_has_one_name_whatever_it_calls_itself(told: str, word: str) -> None:
    assert machine_of(told) == word


def test_a_family_is_any_of_its_kind() -> None:
    assert [each for each in MACHINES if suits(each, "x86")] == ["x86_64", "x86_32"]
    assert [each for each in MACHINES if suits(each, "arm")] == ["arm64", "arm"]
    assert not suits("", "x86") and not suits("x86", "x86_64")
