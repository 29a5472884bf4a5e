"""Compares the literal requirements of a flow's jobs with the pilots of a simulated grid.

A job that fits none of them would wait for ever, so it is refused before anything is simulated."""

from collections.abc import Mapping, Sequence

from msgspec.structs import asdict, fields

from mendflow.core.engine.activities.job_parts import as_resources
from mendflow.core.expressions import is_template
from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.flow import JobActivity
from mendflow.core.model.jobs import Resources
from mendflow.core.model.templates import ResourceTemplates
from mendflow.sim.grid.capacity import can_some_pilot_take, misfit_text
from mendflow.sim.grid.scene import SiteScene


def check_needs(jobs: Mapping[str, JobActivity], sites: Sequence[SiteScene]) -> None:
    """Refuse a flow with jobs that fit no pilot."""
    for name, job in jobs.items():
        needs = _known_needs(name, job.resources)
        if not can_some_pilot_take(needs, sites):
            raise InvalidRequest(f"no pilot could ever take the job {name}: {misfit_text(needs, sites)}")


def _known_needs(name: str, stated: ResourceTemplates) -> Resources:
    """Expressions are known only when the flow runs, and require nothing until then."""
    plain = {each.name: each.default for each in fields(ResourceTemplates)}
    return as_resources(
        {key: plain[key] if is_template(value) else value for key, value in asdict(stated).items()}, name
    )
