"""The API's own description, as it is sent: as JSON, and as a page for people.

It is large and the same for everybody, and whoever asks for it need not show a token. So each form is written when it
is asked for first, and kept beside the description that it was made of."""

import gzip
import hashlib
from functools import cached_property
from typing import Any, Final

from litestar.serialization import encode_json

from mendflow.server.docs_page import page_of

GZIP_LEVEL: Final = 6


class DescriptionPage:
    """What is sent, as it is and compressed."""

    def __init__(self, plain: bytes) -> None:
        self.plain, self.packed = plain, gzip.compress(plain, GZIP_LEVEL, mtime=0)
        self.digest = hashlib.sha256(plain).hexdigest()[:32]


class ApiDescription:
    """The forms of one description."""

    def __init__(self, description: dict[str, Any]) -> None:
        self._description = description

    @cached_property
    def json(self) -> DescriptionPage:
        return DescriptionPage(encode_json(self._description))

    @cached_property
    def html(self) -> DescriptionPage:
        return DescriptionPage(page_of(self._description).encode())
