"""Who asks, and browsers that sign in and out."""

from collections.abc import Callable
from typing import Any, Final

import msgspec
from litestar import Request, Response
from litestar.di import NamedDependency
from litestar.params import RawBody, SkipValidation

from mendflow.core.model.sessions import Identity, SignInCode, SignInOptions, SignInRequest
from mendflow.operations.table import OPERATIONS
from mendflow.server.access import RequestOrigin
from mendflow.server.request_audit import note
from mendflow.server.routes.json_body import decode_json
from mendflow.server.routes.parameters import TheCaller, TheDomain, TheSignIn

_SIGN_IN: Final = msgspec.json.Decoder(SignInRequest)
TheOrigin = NamedDependency[SkipValidation[RequestOrigin]]


async def me(
    request: Request[Any, Any, Any], domain: TheDomain, caller: TheCaller, sign_in: TheSignIn, origin: TheOrigin
) -> Identity:
    may = [each.id for each in OPERATIONS.values() if each.allowed.allow(caller)]
    return domain.identity(caller, may, await sign_in.signed_in_by(request.scope, origin))


async def sign_in_options(caller: TheCaller, sign_in: TheSignIn) -> SignInOptions:
    return SignInOptions(signed_in=bool(caller.roles or caller.projects), issuer=sign_in.issuer)


async def sign_in(
    request: Request[Any, Any, Any], body: RawBody, sign_in: TheSignIn, origin: TheOrigin
) -> Response[None]:
    asked = decode_json(_SIGN_IN, body)
    signed_in = await sign_in.begin(request.scope, origin, token=asked.token, code=asked.code)
    note(who=signed_in.caller.name)
    return _with_cookie(signed_in.cookie)


async def sign_out(request: Request[Any, Any, Any], sign_in: TheSignIn) -> Response[None]:
    return _with_cookie(await sign_in.end(request.scope))


def _with_cookie(cookie: str) -> Response[None]:
    headers = {"Cache-Control": "no-store", **({"Set-Cookie": cookie} if cookie else {})}
    return Response(None, status_code=204, headers=headers)


async def create_sign_in_code(
    request: Request[Any, Any, Any], caller: TheCaller, sign_in: TheSignIn, origin: TheOrigin
) -> SignInCode:
    return await sign_in.create_code(request.scope, caller, origin)


HANDLERS: dict[str, Callable[..., Any]] = {
    "me": me,
    "sign_in_options": sign_in_options,
    "sign_in": sign_in,
    "sign_out": sign_out,
    "create_sign_in_code": create_sign_in_code,
}
