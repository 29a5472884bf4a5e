"""What a person names on the command line: a case, or an item of it, in any of the forms that commands print. All
commands that take a case, an item or a job understand the same forms."""

from typing import Final

import msgspec

from mendflow.client import Client
from mendflow.core.model.errors import InvalidRequest, NotFound
from mendflow.lazy import lazy_pattern

JOB_NUMBER: Final = lazy_pattern(r"\d+(~\d+)?")
FORMS: Final = "CASE:ITEM, CASE/ITEM or CASE/NUMBER; CASE may be `last`"


class CaseReference(msgspec.Struct, frozen=True):
    """An item of a case; the whole case, if the item is empty."""

    case: str
    item: str = ""


async def find_reference(client: Client, text: str, item: str = "") -> CaseReference:
    """What is meant by CASE, CASE:ITEM, CASE/ITEM or CASE/NUMBER. `item` is one that was given beside it."""
    case, colon, named = text.partition(":")
    if not colon:
        case, slash, named = text.rpartition("/")
        if slash and JOB_NUMBER.fullmatch(named):
            job = await client.job(await job_id(client, text))
            case, named = job.case, str(job.spec.item)
        elif not slash:
            case, named = text, ""
    if named and item and named != item:
        raise InvalidRequest(f"{text} names the item {named}, and {item} is given beside it; give one of them")
    return CaseReference(case, named or item)


async def job_id(client: Client, text: str) -> str:
    """The job that is meant: by its own id, or by its item."""
    case, slash, number = text.rpartition("/")
    if slash and ":" not in text and JOB_NUMBER.fullmatch(number):
        return f"{(await client.case(case)).id}/{number}" if case == "last" else text
    subject = await find_reference(client, text)
    if not subject.item:
        raise InvalidRequest(f"{text} is no job; name one: {FORMS}")
    view = await client.item(subject.case, subject.item)
    if view.job is None:
        raise NotFound(f"{text} is a {view.kind} and has no job; see mendflow why {text}")
    return str(view.job)


async def reference_text(client: Client, text: str) -> str:
    """The subject as the server knows it: CASE, CASE:ITEM, CASE/NUMBER, or the name of something else."""
    if ":" in text or "/" not in text:
        return text
    case, _, named = text.rpartition("/")
    return await job_id(client, text) if JOB_NUMBER.fullmatch(named) else f"{case}:{named}"
