"""Who the caller is, and the one-time codes by which a browser signs in. Signing in and out itself is for browsers
alone, and stands with the operations that are no calls (operations/table.py)."""

from mendflow.core.model.sessions import Identity, SignInCode, SignInOptions
from mendflow.operations.operation import Calls, operation
from mendflow.operations.roles import ANYBODY, KNOWN
from mendflow.operations.subjects import INSTALLATION


class SessionCalls(Calls, tag="session"):
    @operation("GET", "/me", KNOWN, INSTALLATION)
    async def me(self) -> Identity:
        """Who the caller is, and what it may do here."""

    @operation("GET", "/session", ANYBODY, INSTALLATION)
    async def sign_in_options(self) -> SignInOptions:
        """How a browser can sign in."""

    @operation("POST", "/session/codes", KNOWN, INSTALLATION)
    async def create_sign_in_code(self) -> SignInCode:
        """Make a code by which a browser signs in as the caller. It holds for a minute, and once. If the caller is on
        the server's own machine, it is for browsers of the same account."""
