"""A site whose servers share a PostgreSQL of its own."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.site import Site
from tests.servers.postgresql import postgresql_server


@contextmanager
def site_on_postgresql(folder: Path, *, lease_s: int = 8) -> Iterator[Site]:
    with postgresql_server() as store:
        site = Site(folder, store.url, lease_s=lease_s)
        try:
            yield site
        finally:
            site.close()
