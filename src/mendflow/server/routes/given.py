"""What a handler can ask for by name, and the parameters that many routes share."""

from typing import Annotated, Any

from litestar import Request
from litestar.di import NamedDependency, Provide
from litestar.params import FromQuery, PathParameter, QueryParameter, SkipValidation

from mendflow.server.access import Caller
from mendflow.server.holds import Holds
from mendflow.services.domain import Domain

TheDomain = NamedDependency[SkipValidation[Domain]]
TheCaller = NamedDependency[SkipValidation[Caller]]
TheHolds = NamedDependency[SkipValidation[Holds]]

CaseName = Annotated[str, PathParameter(description="A case's id, or the word `last`.")]
Limit = Annotated[int, QueryParameter(ge=1, le=10_000, description="At most so many.")]
Offset = Annotated[int, QueryParameter(ge=0, le=2**53, description="Pass over so many first.")]
Serial = Annotated[int, PathParameter(ge=0, le=2**53, description="The number after the slash of the id.")]

Text = FromQuery[str]

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
