"""What the jobs of a flow want, as far as the flow says it plainly, held beside the pilots of an imagined grid.

A job that none of them could ever take would only wait: it is told before anything is played."""

from collections.abc import Mapping, Sequence

from msgspec.structs import asdict, fields

from mendflow.core.engine.activities.job import as_resources
from mendflow.core.expressions import is_template
from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.flow import JobActivity, ResourceTemplates
from mendflow.core.model.jobs import Resources
from mendflow.sim.grid.capacity import can_some_pilot_take, misfit_text
from mendflow.sim.grid.scene import SiteScene


def check_needs(jobs: Mapping[str, JobActivity], sites: Sequence[SiteScene]) -> None:
    """Refuse a flow with jobs that no pilot could ever take."""
    for name, job in jobs.items():
        needs = _known_needs(name, job.resources)
        if not can_some_pilot_take(needs, sites):
            raise InvalidRequest(f"no pilot could ever take the job {name}: {misfit_text(needs, sites)}")


def _known_needs(name: str, stated: ResourceTemplates) -> Resources:
    """What is an expression is known only when the flow runs, and asks for nothing until then."""
    plain = {each.name: each.default for each in fields(ResourceTemplates)}
    return as_resources(
        {key: plain[key] if is_template(value) else value for key, value in asdict(stated).items()}, name
    )
