"""What a handler can ask for by name, and the parameters that many routes share."""

from typing import Annotated, Any

from litestar import Request
from litestar.di import Provide
from litestar.params import Dependency, Parameter

from mendflow.server.access import Caller
from mendflow.server.holds import Holds
from mendflow.services.domain import Domain

TheDomain = Annotated[Domain, Dependency(skip_validation=True)]
TheCaller = Annotated[Caller, Dependency(skip_validation=True)]
TheHolds = Annotated[Holds, Dependency(skip_validation=True)]

CaseName = Annotated[str, Parameter(description="A case's id, or the word `last`.")]
Limit = Annotated[int, Parameter(ge=1, le=10_000, description="At most so many.")]
Offset = Annotated[int, Parameter(ge=0, le=2**53, description="Pass over so many first.")]
Serial = Annotated[int, Parameter(ge=0, le=2**53, description="The number after the slash of the id.")]

CALLER = "mendflow_caller"
"""Where the gate leaves the caller in the request's scope."""


def _caller(request: Request[Any, Any, Any]) -> Caller:
    caller = request.scope["state"][CALLER]
    assert isinstance(caller, Caller)
    return caller


def dependencies(domain: Domain, holds: Holds) -> dict[str, Provide]:
    return {
        "domain": Provide(lambda: domain, sync_to_thread=False),
        "holds": Provide(lambda: holds, sync_to_thread=False),
        "caller": Provide(_caller, sync_to_thread=False),
    }
