"""A job with an image goes to pilots that can run it, and `why` says so when there is none."""

from typing import Any

from mendflow.core.model.containers import JobContainer
from mendflow.core.model.ids import CaseId, ItemId, JobId, PilotId
from mendflow.core.model.jobs import Job, JobSpec, Outcome
from mendflow.core.model.sync import Capacity
from mendflow.core.recovery.resubmission import with_changes
from mendflow.core.results.result_key import differences, made_from, result_key
from mendflow.core.results.reuse_checks import why_undeclared
from mendflow.core.scheduling.explanations import PilotFacts, why_waiting
from mendflow.core.scheduling.jobs import effective_needs
from mendflow.core.scheduling.offer import Offer, free_for_one


def job_in(image: str) -> Job:
    spec = JobSpec(item=ItemId("a"), command="true", container=JobContainer(image=image))
    return Job(id=JobId("c/1"), case=CaseId("c"), spec=spec)


def capacity_with(runtime: str) -> Capacity:
    return Capacity(slots=1, cpus=4, memory_bytes=1 << 30, disk_bytes=1 << 30, runtime=runtime)


def facts_of(runtime: str) -> PilotFacts:
    has = capacity_with(runtime)
    return PilotFacts(
        id=PilotId(f"p-{runtime}"),
        host="h",
        capacity=has,
        cpus_free=4,
        memory_free_bytes=1 << 30,
        disk_free_bytes=1 << 30,
    )


def fits(image: str, runtime: str) -> bool:
    offer = Offer(cpus=4, memory_bytes=1 << 30, disk_bytes=1 << 30, whole=capacity_with(runtime))
    return free_for_one(offer).fits(effective_needs(job_in(image)))


def test_a_pilot_gets_a_job_only_with_a_runtime_for_its_image() -> None:  # DU-5
    assert fits("ubuntu:24.04", "podman") and fits("ubuntu:24.04", "apptainer") and fits("/a.sif", "apptainer")
    assert not fits("ubuntu:24.04", "") and not fits("/a.sif", "podman") and not fits("/a.sif", "docker")


def test_why_says_that_no_pilot_has_a_runtime() -> None:  # DU-5
    told = why_waiting(job_in("ubuntu:24.04"), [facts_of("")], 0, 0)
    assert told.stuck and "its container ubuntu:24.04 needs apptainer or podman or docker" in told.sentence
    told = why_waiting(job_in("/a.sif"), [facts_of("podman")], 0, 0)
    assert "needs apptainer, and no pilot has that" in told.sentence and "p-podman on h has podman" in told.facts
    assert not why_waiting(job_in("ubuntu:24.04"), [facts_of("podman")], 0, 0).stuck


def test_the_result_of_a_job_depends_on_its_image() -> None:  # DU-5
    one, other = job_in("a:1").spec, job_in("a:2").spec
    plain = JobSpec(item=ItemId("a"), command="true")
    assert len({result_key(one), result_key(other), result_key(plain)}) == 3
    assert differences(one, other) == ["its container changed"]
    assert made_from(one)["container"] == {"image": "a:1"}


def test_a_result_made_in_an_image_of_no_version_is_not_used_again_by_itself() -> None:  # DU-5
    declared: dict[str, Any] = {"files": {"o": "o"}, "args": [1]}
    spec = JobSpec(item=ItemId("a"), command="true", container=JobContainer(image="tools"), **declared)
    assert "its image tools may be another by now" in why_undeclared(spec)
    fixed = JobSpec(item=ItemId("a"), command="true", container=JobContainer(image="tools:1"), **declared)
    assert "image" not in why_undeclared(fixed)


def test_a_repair_may_choose_another_image_or_none() -> None:  # DU-5
    spec = JobSpec(item=ItemId("a"), command="true", container=JobContainer(image="a:1", mounts=("/data",)))
    same: dict[str, Any] = {"resources": {}, "env": {}, "avoid_hosts": (), "sources": {}, "transfer": {}}
    assert with_changes(spec, **same, image="a:2").container == JobContainer(image="a:2", mounts=("/data",))
    assert with_changes(spec, **same, image="none").container is None
    assert with_changes(spec, **same).container == spec.container
    assert Outcome().image == ""
