"""Which documents that all cases share an archive has, and which files a document refers to."""

import re
from typing import Final

from mendflow.core.model.ids import CaseId
from mendflow.lazy import lazy_pattern
from mendflow.services.cases.flow_file_store import FLOW_FILE_KIND
from mendflow.services.cases.flows import FLOW_KIND
from mendflow.services.data.catalogue.elements import STORAGE_KIND
from mendflow.services.data.catalogue.files import FILE_KIND
from mendflow.services.data.catalogue.holds import PLACE_KIND
from mendflow.services.recovery.proxy.patterns import PATTERN_KIND
from mendflow.services.recovery.rules.store import RULES_KIND, VERSION_KIND
from mendflow.services.recovery.unwinding import COMPENSATION_KIND

FLOW_VERSION_KIND: Final = "flow-version"
NAMED_KINDS: Final = {FLOW_KIND: FLOW_VERSION_KIND, RULES_KIND: VERSION_KIND}
"""Documents that cases refer to by name, and the kind that has all their versions: `NAME@1`, `NAME/00000001`."""

SHARED_DOMAIN_KINDS: Final = (PATTERN_KIND, COMPENSATION_KIND, STORAGE_KIND, PLACE_KIND, FILE_KIND)
"""Included only in an archive of everything."""

SHARED_KINDS: Final = (*NAMED_KINDS, *NAMED_KINDS.values(), FLOW_FILE_KIND, *SHARED_DOMAIN_KINDS)

IMPORTED_KIND: Final = "imported"
"""A document for each imported tree: from which archive, and whether all of it is here."""

ROOT: Final = lazy_pattern(r"[A-Za-z_][A-Za-z0-9_-]{0,199}")
ID: Final = lazy_pattern(r"[^\x00-\x1f\x7f]{1,2000}")
SHA256: Final = lazy_pattern(r"[0-9a-f]{64}")
_FILES: Final = lazy_pattern(rb'"(?:\$file|\$spilled|sha256)"\s*:\s*"([0-9a-f]{64})"|"kept:([0-9a-f]{64})"')


def files_in(body: bytes) -> set[str]:
    """The stored files that a document, or an entry of a journal, refers to."""
    return {(first or second).decode() for first, second in _FILES.findall(body)}


def name_of_version(id: str) -> str:
    """The name in the id of a version document."""
    return re.split(r"[@/]", id, maxsplit=1)[0]


def renamed(body: bytes, old: CaseId, new: CaseId) -> bytes:
    """A document or an entry with the tree renamed: every text in it that begins like an id of the tree is changed."""
    return re.sub(rb'"' + re.escape(old.encode()) + rb'(?=["./:])', b'"' + new.encode(), body)
