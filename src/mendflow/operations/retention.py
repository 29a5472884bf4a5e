"""Retention: cases that are over go, by hand or by rules."""

from mendflow.core.model.retention import PruneRequest, PruneView, RetentionRule, RetentionRuleView
from mendflow.operations.arguments import Body
from mendflow.operations.operation import Calls, operation
from mendflow.operations.roles import ADMINISTRATORS
from mendflow.operations.subjects import INSTALLATION


class RetentionCalls(Calls, tag="retention"):
    @operation("POST", "/prunes", ADMINISTRATORS, INSTALLATION, status=202)
    async def prune(self, request: Body[PruneRequest]) -> PruneView:
        """Remove cases that are over: their documents, journals, logs, results and files. Nothing goes that anything
        refers to that stays. The answer comes at once; `GET /prunes/{id}` says how far it is. Refused while another
        one is under way."""

    @operation("GET", "/prunes/{id}", ADMINISTRATORS, INSTALLATION)
    async def prune_run(self, id: str) -> PruneView:
        """How far a prune is, or what went. Only the last one is known."""

    @operation("GET", "/retention", ADMINISTRATORS, INSTALLATION)
    async def retention_rules(self) -> list[RetentionRuleView]:
        """The rules that a server applies once an hour, by name."""

    @operation("PUT", "/retention/{rule.name}", ADMINISTRATORS, INSTALLATION, repeatable=True)
    async def put_retention_rule(self, rule: Body[RetentionRule]) -> RetentionRuleView:
        """Set a rule: the cases that it lets go are pruned once an hour from now on."""

    @operation("DELETE", "/retention/{name}", ADMINISTRATORS, INSTALLATION)
    async def remove_retention_rule(self, name: str) -> RetentionRuleView:
        """Remove a rule. Cases that are gone do not come back."""
