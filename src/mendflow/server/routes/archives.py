"""Archives: export cases to a file, and import them from one. Both stream; neither holds the archive in memory."""

from collections.abc import Callable
from typing import Annotated, Any

from litestar import Request
from litestar.params import QueryParameter
from litestar.response import Stream

from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.import_reports import ImportReport
from mendflow.server.request_body import body_chunks
from mendflow.server.routes.files import BytesMax
from mendflow.server.routes.parameters import Condition, TheCaller, TheDomain

ARCHIVE_TYPE = "application/gzip"
Flag = Annotated[bool, QueryParameter()]


async def export(
    domain: TheDomain,
    caller: TheCaller,
    case: Annotated[list[str] | None, QueryParameter(description="A case's id; any number of them.")] = None,
    everything: Flag = False,
    where: Condition = "",
    files: Flag = True,
    leave_out_unreachable: Flag = False,
) -> Stream:
    if not (case or everything or where):
        raise InvalidRequest("say which cases: by `case`, by `where`, or `everything`", field="case")
    content = await domain.export(
        case or [],
        everything=everything,
        where=where,
        files=files,
        leave_out=leave_out_unreachable,
        who=caller.name,
        sight=caller.sight("operator"),
    )
    headers = {"Content-Disposition": 'attachment; filename="mendflow.archive"', "X-Content-Type-Options": "nosniff"}
    return Stream(content, media_type=ARCHIVE_TYPE, headers=headers)


async def import_archive(
    request: Request[Any, Any, Any],
    domain: TheDomain,
    caller: TheCaller,
    file_bytes_max: BytesMax,
    as_new: Flag = False,
    skip_existing: Flag = False,
    resume: Flag = False,
) -> ImportReport:
    body = body_chunks(request.receive, file_bytes_max)
    return await domain.import_archive(body, as_new=as_new, skip_existing=skip_existing, resume=resume, who=caller.name)


HANDLERS: dict[str, Callable[..., Any]] = {"export": export, "import_archive": import_archive}
