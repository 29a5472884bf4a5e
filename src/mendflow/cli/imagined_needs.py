"""What the jobs of a flow want, as far as the flow says it plainly, held beside the pilots of an imagined grid.

A job that none of them could ever take would only wait: it is told before anything is played."""

from collections.abc import Mapping, Sequence

from msgspec.structs import asdict, fields

from mendflow.core.engine.activities.job import as_resources
from mendflow.core.expressions import is_template
from mendflow.core.model.flow import Job, NeededResources
from mendflow.core.model.jobs import Resources
from mendflow.core.model.problems import Invalid
from mendflow.sim.grid.fitting import misfit, some_pilot_takes
from mendflow.sim.grid.scene import SiteScene


def check_needs(jobs: Mapping[str, Job], sites: Sequence[SiteScene]) -> None:
    """Refuse a flow with jobs that no pilot could ever take."""
    for name, job in jobs.items():
        needs = _known_needs(name, job.resources)
        if not some_pilot_takes(needs, sites):
            raise Invalid(f"no pilot could ever take the job {name}: {misfit(needs, sites)}")


def _known_needs(name: str, stated: NeededResources) -> Resources:
    """What is an expression is known only when the flow runs, and asks for nothing until then."""
    plain = {each.name: each.default for each in fields(NeededResources)}
    return as_resources(
        {key: plain[key] if is_template(value) else value for key, value in asdict(stated).items()}, name
    )
