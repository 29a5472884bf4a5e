"""The part of the domain that is about tokens."""

from mendflow.core.model.access_tokens import CreatedToken, TokenRequest, TokenView
from mendflow.core.model.principals import person_text
from mendflow.services.api.view_operations import ViewOperations


class TokenOperations(ViewOperations):
    async def tokens(self) -> list[TokenView]:
        return await self._server.access_tokens.all()

    async def create_token(self, request: TokenRequest, *, who: str) -> CreatedToken:
        made = await self._server.access_tokens.create(request, who=who)
        self._server.runtime.notices.post(f"token {made.view.id} of {made.view.name} was made by {person_text(who)}")
        await self._settled()
        return made

    async def revoke_token(self, token: str, *, who: str) -> list[TokenView]:
        revoked = await self._server.access_tokens.revoke(token)
        for each in revoked:
            self._server.runtime.notices.post(f"token {each.id} of {each.name} was revoked by {person_text(who)}")
        await self._settled()
        return revoked
