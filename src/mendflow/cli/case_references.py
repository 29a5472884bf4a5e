"""What a person names on the command line: a case, or an item of it, in any of the forms that commands print. All
commands that take a case, an item or a job understand the same forms."""

from typing import Final

import msgspec

from mendflow.client import Client
from mendflow.core.model.errors import InvalidRequest, NotFound
from mendflow.lazy import lazy_pattern

JOB_NUMBER: Final = lazy_pattern(r"\d+(~\d+)?")
FORMS: Final = "CASE:ITEM, CASE/ITEM or CASE/NUMBER; CASE may be `last`"
ITEMS_SEARCHED: Final = 10_000
ITEMS_SHOWN: Final = 5


class CaseReference(msgspec.Struct, frozen=True):
    """An item of a case; the whole case, if the item is empty."""

    case: str
    item: str = ""


async def find_reference(client: Client, text: str, item: str = "") -> CaseReference:
    """What is meant by CASE, CASE:ITEM, CASE/ITEM or CASE/NUMBER, where CASE of another engine is ENGINE:CASE. `item`
    is one that was given beside it. An item of a loop may also be named by its element: NAME[ELEMENT], or ELEMENT
    alone."""
    case, colon, named = text.partition(":")
    if colon and (foreign := await _of_other_engine(client, text)) is not None:
        case, named = foreign.case, foreign.item
    elif not colon:
        case, slash, named = text.rpartition("/")
        if slash and JOB_NUMBER.fullmatch(named):
            job = await client.job(await job_id(client, text))
            case, named = job.case, str(job.spec.item)
        elif not slash:
            case, named = text, ""
    if named and item and named != item:
        raise InvalidRequest(f"{text} names the item {named}, and {item} is given beside it; give one of them")
    wanted = named or item
    return CaseReference(case, await _item_named(client, case, wanted) if wanted else "")


async def _item_named(client: Client, case: str, named: str) -> str:
    """The item of this name; or the one whose element is named, if there is no such item; or else the name itself, of
    which whoever uses it says that it is unknown."""
    try:
        await client.item(case, named)
        return named
    except NotFound:
        pass
    name, bracket, element = named.removesuffix("]").partition("[")
    try:
        items = await client.items(case, name=name if bracket else "", limit=ITEMS_SEARCHED)
    except NotFound:
        return named
    found = [str(each.item) for each in items if each.element and each.element == (element if bracket else named)]
    if len(found) > 1:
        more = f" and {len(found) - ITEMS_SHOWN} more" if len(found) > ITEMS_SHOWN else ""
        raise InvalidRequest(f"{named} is the element of {', '.join(found[:ITEMS_SHOWN])}{more}; name one: {case}:ITEM")
    return found[0] if found else named


async def _of_other_engine(client: Client, text: str) -> CaseReference | None:
    """What is meant by ENGINE:CASE or ENGINE:CASE:ITEM, if there is such an engine. Ids of its cases may have
    colons."""
    engine, _, rest = text.partition(":")
    if engine not in {each.name for each in await client.engines()}:
        return None
    if ":" not in rest:
        return CaseReference(text)
    try:
        return CaseReference(str((await client.case(text)).id))
    except NotFound:
        case, _, item = text.rpartition(":")
        return CaseReference(case, item)


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
    if ":" not in text and "/" not in text:
        return text
    if ":" not in text and JOB_NUMBER.fullmatch(text.rpartition("/")[2]):
        return await job_id(client, text)
    subject = await find_reference(client, text)
    return f"{subject.case}:{subject.item}" if subject.item else text
