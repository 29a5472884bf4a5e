"""Decodes bytes by their byte order mark or declaration. Few encodings are accepted: one that the checks decode
differently from the parser would bypass them."""

from typing import Final

from mendflow.lazy import lazy_pattern

DECLARED: Final = lazy_pattern(rb"""\s*<\?xml\s[^>]{0,200}?encoding\s*=\s*["']([A-Za-z0-9._-]{1,40})["']""")
SUPPORTED: Final = {
    "utf-8": "utf-8",
    "utf8": "utf-8",
    "us-ascii": "ascii",
    "ascii": "ascii",
    "iso-8859-1": "latin-1",
    "iso-8859-15": "iso8859-15",
    "windows-1252": "cp1252",
}
MARKS: Final = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
WIDE: Final = (b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff")


class Unreadable(Exception):
    """The bytes are no text that is taken."""

    def __init__(self, message: str, line: int = 1) -> None:
        super().__init__(message)
        self.line = line


def decode(data: bytes | str) -> str:
    """The text, without a mark at its beginning."""
    if isinstance(data, str):
        try:
            data.encode()
        except UnicodeEncodeError as error:
            raise Unreadable("it holds half a character", data.count("\n", 0, error.start) + 1) from None
        return data.removeprefix("\ufeff")
    if data.startswith(WIDE):
        raise Unreadable("it is in UTF-32; save it as UTF-8")
    mark, encoding = next(((mark, name) for mark, name in MARKS if data.startswith(mark)), (b"", ""))
    encoding = encoding or _declared(data)
    try:
        return data[len(mark) :].decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Unreadable(f"a byte that {encoding} does not have; save the file as UTF-8", line) from None


def _declared(data: bytes) -> str:
    found = DECLARED.match(data[:400])
    name = found.group(1).decode().lower() if found else "utf-8"
    if name not in SUPPORTED:
        raise Unreadable(f"it says that it is in {name}; save it as UTF-8, and say so")
    return SUPPORTED[name]
