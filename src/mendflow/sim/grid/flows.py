"""Adds a scene's retries and priority to the jobs of a flow that have none."""

from typing import Any

import msgspec

from mendflow.core.model.flow import Flow, JobActivity


class _FlowSettings(msgspec.Struct, frozen=True):
    retries: int
    retry_wait_ms: int
    priority: int

    def add_to(self, node: Any) -> Any:
        """The node with every job below it changed; the node itself if there is none."""
        if isinstance(node, JobActivity):
            return self._add_to_job(node)
        if isinstance(node, tuple):
            return tuple(map(self.add_to, node))
        if not isinstance(node, msgspec.Struct):
            return node
        values = {name: getattr(node, name) for name in node.__struct_fields__}
        changed = {name: new for name, old in values.items() if (new := self.add_to(old)) is not old}
        return msgspec.structs.replace(node, **changed) if changed else node

    def _add_to_job(self, job: JobActivity) -> JobActivity:
        own = {"retries": job.retries, "retry_wait_ms": job.retry_wait_ms, "priority": job.priority}
        given = {name: getattr(self, name) for name, value in own.items() if not value}
        return msgspec.structs.replace(job, **given)


def with_settings(flow: Flow, *, retries: int = 0, retry_wait_ms: int = 0, priority: int = 0) -> Flow:
    if not (retries or retry_wait_ms or priority):
        return flow
    changed: Flow = _FlowSettings(retries, retry_wait_ms, priority).add_to(flow)
    return changed
