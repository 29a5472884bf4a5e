"""Small flows of two steps, and grids to run them in."""

from mendflow.core.model.expr import Expr
from mendflow.core.model.flow import Flow, ForEach, JobActivity, Sequence
from mendflow.core.model.ids import FlowName
from mendflow.sim.grid.job_model import SteadyJobs
from mendflow.sim.grid.scene import MB, ElementScene, GridScene, SiteScene

MADE = Expr("jobs['first.iteration'].files.out")
JOB_MODEL = SteadyJobs(100, 10, file_bytes=700 * MB)
SLOW = ElementScene(delay=0.15)
BAD = ElementScene(delay=0.15, failure=0.2)


def chain(jobs: int, *, retries: int = 0) -> Flow:
    """Each job of the second step reads what one of the first has made."""
    return two_steps(jobs, jobs, {"in.dat": "${{ jobs.first.outputs[item] }}"}, retries=retries)


def splitting(jobs: int) -> Flow:
    """Two jobs of the second step read each file of the first."""
    return two_steps(jobs, 2 * jobs, {"in.dat": "${{ jobs.first.outputs[int(item / 2)] }}"})


def two_steps(first: int, then: int, inputs: dict[str, str], *, retries: int = 0) -> Flow:
    files = {"out": "out.dat"}
    maker = JobActivity(name="first.iteration", label="first", command="make", files=files, retries=retries)
    reader = JobActivity(
        name="then.iteration", label="then", command="read", inputs=inputs, files=files, retries=retries
    )
    makes = ForEach(name="first", first=0, last=first - 1, body=maker, collect=MADE)
    reads = ForEach(name="then", first=0, last=then - 1, body=reader)
    return Flow(name=FlowName("chain"), body=Sequence(name="all", body=(makes, reads)))


def many(jobs: int, **about: int) -> Flow:
    """Jobs that have nothing to do with each other."""
    job = JobActivity(name="many.iteration", label="many", command="work", **about)  # type: ignore[arg-type]  # numbers of a job
    return Flow(name=FlowName("many"), body=ForEach(name="many", first=0, last=jobs - 1, body=job))


def grid(seed: int = 1, *, wait_for_data: bool = True, retries: int = 0, **site: object) -> GridScene:
    """A grid of one site with eight pilots on two hosts, unless something else is said."""
    settings = {"hosts": 2, "pilots_a_host": 4, "running": 8, "element": SLOW, **site}
    scene = SiteScene(**settings)  # type: ignore[arg-type]  # whatever a test says of its site
    return GridScene(seed=seed, sites=(scene,), wait_for_data=wait_for_data, retries=retries)
