"""Jobs that no pilot of a grid could ever take are told before anything is played, with what would help."""

import pytest

from mendflow.cli.sim_needs import check_needs
from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.flow import JobActivity
from mendflow.core.model.templates import ResourceTemplates
from mendflow.sim.grid.scene import GB, SiteScene

SITES = (SiteScene(name="near", running=4, life_s=600.0), SiteScene(name="far", running=4, cpus=8.0))


def job(**needs: object) -> dict[str, JobActivity]:
    return {"work": JobActivity(name="work", command="x", resources=ResourceTemplates(**needs))}


@pytest.mark.parametrize(
    "needs",
    [
        {"cpus": 8, "memory_bytes": 16 * GB},
        {"wall_ms": 3_600_000},
        {"wall_ms": 600_000, "site": "near"},
        {"cpus": "${{ inputs.many }}"},
    ],
)
def test_what_some_pilot_takes_or_nobody_can_know_yet_may_be_played(needs: dict[str, object]) -> None:
    check_needs(job(**needs), SITES)


@pytest.mark.parametrize(
    ("needs", "sentence"),
    [
        ({"cpus": 1000}, "it wants 1,000 CPUs; each pilot of near has 1 CPU, 16.0 GB of memory"),
        ({"cpus": 1000}, "give them more, with --site near:cpus=1000"),
        ({"cpus": 9, "memory_bytes": 32 * GB}, "--site near:cpus=9,memory=32000000000"),
        ({"disk_bytes": 200 * GB, "memory_bytes": "${{ inputs.m }}"}, "--site near:disk=200000000000"),
        ({"wall_ms": 3_600_000, "site": "near"}, "and 10 m 0 s to live; give them more, with --site near:life=3600"),
        ({"site": "nowhere"}, "it wants the site nowhere; add it with --site nowhere:pilots=8"),
        ({"gpus": 1}, "it wants 1 CPU and 1 GPU; "),
        ({"gpus": 1}, "simulated pilots have none of that"),
    ],
)
def test_what_no_pilot_could_ever_take_is_refused_with_advice(needs: dict[str, object], sentence: str) -> None:
    with pytest.raises(InvalidRequest, match="no pilot could ever take the job work: ") as refused:
        check_needs(job(**needs), SITES)
    assert sentence in refused.value.message
