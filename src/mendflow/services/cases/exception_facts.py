"""What an exception event says of a job and its outcome, under the names that contexts have."""

import msgspec

from mendflow.core.model.jobs import JobSpec, Outcome
from mendflow.core.model.values import Value


def job_facts_of(spec: JobSpec) -> dict[str, Value]:
    """The requirements of a job, under the names of the root `job` of contexts."""
    asked: dict[str, Value] = msgspec.structs.asdict(spec.resources)
    asked |= {f"{name}_asked": asked.pop(name) for name in ("site", "system", "machine")}
    asked["hosts_asked"] = list(asked.pop("hosts"))
    asked["domain_asked"] = spec.domain
    del asked["runtimes"]
    asked["container"] = spec.container.image if spec.container is not None else ""
    asked["avoid_hosts"] = list(spec.resources.avoid_hosts)
    return {
        **asked,
        "command": spec.command or "",
        "element": spec.element,
        "expected_ms": spec.expected_ms,
        "priority": spec.priority,
        "owner": spec.owner,
        "retries": spec.retries,
    }


def outcome_facts(outcome: Outcome) -> dict[str, Value]:
    return {"ok": outcome.ok, "outputs": outcome.outputs, "exit_code": outcome.exit_code, "values": outcome.values}
