"""Going through a great many documents, page by page: each page costs what it holds, however far back it is.

Fills an empty store, goes through all of it by id, and says how long the first and the last pages
took. `python -m bench.paging URL [DOCUMENTS]`, with a URL as for `mendflow serve --store`."""

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from mendflow.stores.contract import Put, Store, StoredDocument
from mendflow.stores.urls import store_at

DOCUMENTS = 1_000_000
BATCH = 4_000
PAGE = 10_000
KIND = "paged"


async def fill(store: Store, count: int) -> float:
    """Seconds to write so many small documents, in batches."""
    started = time.perf_counter()
    for start in range(0, count, BATCH):
        numbers = range(start, min(start + BATCH, count))
        await store.write([Put(KIND, f"{n:09}", b'{"n":%d,"state":"s%d"}' % (n, n % 7), 0) for n in numbers])
    await store.refresh()
    return time.perf_counter() - started


async def page_through(store: Store, count: int) -> list[float]:
    """Seconds for each page; every document comes once, in order."""
    last: StoredDocument | None = None
    seen, took = 0, []
    while True:
        started = time.perf_counter()
        page = await store.search(KIND, limit=PAGE, after=last)
        took.append(time.perf_counter() - started)
        if not page:
            break
        assert [document.id for document in page] == [f"{n:09}" for n in range(seen, seen + len(page))]
        seen, last = seen + len(page), page[-1]
    assert seen == count, f"{seen} of {count} documents came"
    return took


async def measure(url: str, count: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        located = store_at(url, Path(folder))
        await located.store.open()
        try:
            filling_s = await fill(located.store, count)
            took = await page_through(located.store, count)
        finally:
            await located.store.close()
    print(f"{located.shown}: {count:,} documents written in {filling_s:.1f} s ({count / filling_s:,.0f} a second)")
    print(
        f"  all {len(took) - 1} pages of {PAGE:,} in {sum(took):.1f} s;"
        f" the first in {took[0] * 1000:.0f} ms, the last in {took[-2] * 1000:.0f} ms"
    )


if __name__ == "__main__":
    asyncio.run(measure(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else DOCUMENTS))
