"""Who can be told something: an http address, people by mail, or a webhook by its name.

People write mail addresses in two ways, `ann@example.org` and `mailto:ann@example.org`; the second is stored."""

from typing import Final

from mendflow.address_guard import check_url
from mendflow.core.model.errors import InvalidRequest
from mendflow.services.base.poster import Poster

MAIL_SCHEME: Final = "mailto:"
PEOPLE_MAX: Final = 50
_ADDRESS_CHARS_MAX: Final = 254


def is_address(receiver: str) -> bool:
    """Whether it is an address, not the name of a webhook."""
    return "://" in receiver or "@" in receiver or receiver.startswith(MAIL_SCHEME)


def address_of(receiver: str) -> str:
    """The address as it is stored."""
    is_bare_mail = "@" in receiver and "://" not in receiver and not receiver.startswith(MAIL_SCHEME)
    return f"{MAIL_SCHEME}{receiver}" if is_bare_mail else receiver


def is_mail(address: str) -> bool:
    return address.startswith(MAIL_SCHEME)


def people_of(address: str) -> tuple[str, ...]:
    """The people of a mail address, which are separated by commas."""
    return tuple(each.strip() for each in address.removeprefix(MAIL_SCHEME).split(",") if each.strip())


def check_address(address: str, poster: Poster) -> None:
    """Raise if nothing may be sent there, or nothing can be."""
    if not is_mail(address):
        check_url(address, guard=poster.guard)
        return
    people = people_of(address)
    if bad := [each for each in people if not _is_person(each)] or ([""] if not people else []):
        raise InvalidRequest(f"{bad[0][:100]!r} is not a mail address; give one like ann@example.org", field="url")
    if len(people) > PEOPLE_MAX:
        raise InvalidRequest(f"a mail goes to at most {PEOPLE_MAX} people; make a mailing list", field="url")
    if not poster.mails:
        raise InvalidRequest(
            "this server knows no mail server; start it with --smtp smtp://HOST, or set MENDFLOW_SMTP", field="url"
        )


def _is_person(text: str) -> bool:
    name, at, host = text.rpartition("@")
    plain = text.isascii() and text.isprintable() and not any(each in text for each in ' <>()[]\\,;:"?&')
    return (
        bool(at and name and "@" not in name and host.strip(".") == host and host)
        and plain
        and len(text) <= (_ADDRESS_CHARS_MAX)
    )
