"""Secrets that jobs use by name. No operation gives a value."""

from mendflow.core.model.secrets import SecretValue, SecretView
from mendflow.operations.arguments import Body
from mendflow.operations.names import ProjectName
from mendflow.operations.operation import Calls, operation
from mendflow.operations.roles import AUTHORS, VIEWERS
from mendflow.operations.subjects import LISTED, NEW_SECRET, SECRET


class SecretCalls(Calls, tag="secrets"):
    @operation("GET", "/secrets", VIEWERS, LISTED)
    async def secrets(self) -> list[SecretView]:
        """Secrets, by name: who set them, and which flows use them. Their values are given to jobs only."""

    @operation("PUT", "/secrets/{name}", AUTHORS, NEW_SECRET, repeatable=True)
    async def set_secret(self, name: str, secret: Body[SecretValue], *, project: ProjectName = "") -> SecretView:
        """Set a secret, or another value of it. Attempts that begin from now on get that."""

    @operation("DELETE", "/secrets/{name}", AUTHORS, SECRET)
    async def remove_secret(self, name: str) -> SecretView:
        """Remove a secret from the store. Jobs that use it fail from now on, and say which is missing."""
