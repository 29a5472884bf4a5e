"""<Credential> of the HPC profile (GFD.135): the user and the password for the place that a file comes from or goes to.

They become a part of the file's URL. Servers seal them there before anything is stored."""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple
from urllib.parse import quote

from mendflow.core.xml import ParsedElement
from mendflow.formats.jsdl.reader import JsdlReader, elements, local, namespace
from mendflow.formats.jsdl.vocabulary import WSS

WITH_LOGIN: Final = ("ftp", "http", "https", "scp", "sftp", "smb", "ssh", "webdav")
"""Protocols that take a user and a password."""


class Login(NamedTuple):
    """Without a user there is none."""

    user: str = ""
    password: str = ""


NO_LOGIN: Final = Login()


def read_credential(reader: JsdlReader, given: Sequence[ParsedElement]) -> Login:
    """What a problem says does not repeat the credential."""
    if not given:
        return NO_LOGIN
    reader.attributes(given[0])
    for each in elements(given[0]):
        if (namespace(each), local(each)) != (WSS, "UsernameToken"):
            reader.problem(
                each, f"<{local(each)}> is no credential that can be honoured here: give a <UsernameToken> of {WSS}"
            )
            return NO_LOGIN
    tokens = elements(given[0])
    if len(tokens) != 1:
        reader.problem(given[0], f"<Credential> holds one <UsernameToken>; this one has {len(tokens)}")
        return NO_LOGIN
    parts = reader.parts(tokens[0], {"Username": 1, "Password": 1})
    if not parts.get("Username"):
        reader.problem(tokens[0], "<UsernameToken> has no <Username>")
        return NO_LOGIN
    return Login(reader.word(parts["Username"][0]), _password(reader, parts.get("Password", [])))


def _password(reader: JsdlReader, given: Sequence[ParsedElement]) -> str:
    if not given:
        return ""
    if (kind := given[0].get("Type", "")) and not kind.endswith("#PasswordText"):
        reader.problem(
            given[0], "<Password> is not plain text, and only with that can anybody log in: say Type #PasswordText"
        )
    return reader.text(given[0], "Type").strip()


def with_login(reader: JsdlReader, at: ParsedElement, url: str, login: Login) -> str:
    """The URL with the user and the password in it."""
    if not login.user:
        return url
    scheme, mark, rest = url.partition("://")
    if not mark or scheme not in WITH_LOGIN:
        told = f"<Credential> cannot be honoured: {scheme if mark else 'a place without a scheme'!s:.40}"
        reader.problem(at, f"{told} takes no user and password; {', '.join(WITH_LOGIN)} do")
        return url
    if "@" in re.split(r"[/?#]", rest, maxsplit=1)[0]:
        reader.problem(at, "<URI> names a user, and so does <Credential>: say it once")
        return url
    secret = f":{quote(login.password, safe='')}" if login.password else ""
    return f"{scheme}://{quote(login.user, safe='')}{secret}@{rest}"
