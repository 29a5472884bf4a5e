"""Pilots that work only for the projects that their token names."""

import msgspec
import pytest

from mendflow.core.model.ids import CaseId, ItemId, JobId, PilotId
from mendflow.core.model.jobs import Job, JobSpec, Resources
from mendflow.core.model.sync import Capacity
from mendflow.core.scheduling import ready_jobs
from mendflow.core.scheduling.explanations import PilotFacts, why_waiting
from mendflow.core.scheduling.jobs import effective_needs
from mendflow.core.scheduling.offer import IdleResources, Offer
from mendflow.core.scheduling.queue import JobQueue

NOW = 1_700_000_000_000
HAS = Capacity(slots=8, cpus=8, memory_bytes=8, disk_bytes=8)


def offer(*projects: str) -> Offer:
    return Offer(
        cpus=8, memory_bytes=8, disk_bytes=8, pilot=PilotId("p"), whole=HAS, projects=frozenset(projects) or None
    )


def job(project: str, resources: Resources | None = None) -> Job:
    spec = JobSpec(item=ItemId("a"), command="true", project=project, resources=resources or Resources())
    return Job(id=JobId(project), case=CaseId("c"), name="a", spec=spec, created_at=NOW, available_at=NOW)


@pytest.mark.parametrize(
    ("projects", "taken"),
    [
        ((), {"default", "astro", "bio"}),
        (("astro",), {"astro"}),
        (("astro", "default"), {"astro", "default"}),
        (("chemistry",), set()),
    ],
)
def test_a_pilot_gets_only_jobs_of_its_projects(projects: tuple[str, ...], taken: set[str]) -> None:  # SE-2
    queue = JobQueue()
    for name in ("default", "astro", "bio"):
        queue.add(JobId(name), effective_needs(job(name)), 0, NOW)
    assert {each.first for each in queue.waiting([offer(*projects)]) if each.has_pilot} == taken
    assert set(queue.take(offer(*projects), 10, NOW)) == taken


def test_projects_count_too_where_jobs_are_gathered_roughly() -> None:  # SE-2
    queue = JobQueue()
    for number in range(2 * ready_jobs.EXACT_MAX):
        needs = effective_needs(job("bio" if number % 2 else "default", Resources(wall_ms=number + 1)))
        queue.add(JobId(f"j{number}"), needs, 0, NOW + number)
    taken = {int(id[1:]) % 2 for _ in range(40) for id in queue.take(offer("bio"), 1000, NOW)}
    assert taken == {1}


def test_equal_pilots_of_different_projects_are_told_apart() -> None:  # SE-2
    pilots = IdleResources([offer("bio"), msgspec.structs.replace(offer("astro"), pilot=PilotId("q"))])
    assert pilots.any_fits(effective_needs(job("bio"))) and pilots.any_fits(effective_needs(job("astro")))
    assert not pilots.any_fits(effective_needs(job("default")))


def test_why_says_that_no_pilot_works_for_the_project() -> None:  # SE-2
    def facts(projects: frozenset[str] | None) -> PilotFacts:
        return PilotFacts(
            id=PilotId("p"),
            host="n1",
            capacity=HAS,
            cpus_free=8,
            memory_free_bytes=8,
            disk_free_bytes=8,
            projects=projects,
        )

    told = why_waiting(job("bio"), [facts(frozenset({"astro"}))], 0, NOW)
    assert "it belongs to project bio, and no pilot works for that" in told.sentence and told.stuck
    assert "p on n1 works for astro" in told.facts
    assert "next in the queue" in why_waiting(job("bio"), [facts(None)], 0, NOW).sentence
