"""Tokens in the store, by which people and programs are known. No operation gives one that was made before."""

from mendflow.core.model.access_tokens import CreatedToken, TokenRequest, TokenView
from mendflow.operations.arguments import Body
from mendflow.operations.operation import Calls, operation
from mendflow.operations.roles import ADMINISTRATORS
from mendflow.operations.subjects import INSTALLATION


class TokenCalls(Calls, tag="tokens"):
    @operation("GET", "/tokens", ADMINISTRATORS, INSTALLATION)
    async def tokens(self) -> list[TokenView]:
        """Tokens in the store, by name: what they may do, who made them, and when they were last used."""

    @operation("POST", "/tokens", ADMINISTRATORS, INSTALLATION)
    async def create_token(self, request: Body[TokenRequest]) -> CreatedToken:
        """Make a token. The answer has it, and nothing else ever will: the store has only its hash."""

    @operation("DELETE", "/tokens/{token}", ADMINISTRATORS, INSTALLATION)
    async def revoke_token(self, token: str) -> list[TokenView]:
        """Revoke the token of this id, or all tokens of this name. It is refused from now on, by every server on the
        store within a second."""
