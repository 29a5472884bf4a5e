"""Twenty samples, one job each, and the results merged in their order."""

from mendflow import flow, shell


@flow
def samples():
    made = shell("for n in {01..20}; do seq $n > samples/$n.txt; done", files="samples/")
    counts = shell.map("wc -l < {item} > lines.txt", made.file(), files="lines.txt")
    return shell("cat parts/* > merged.txt", inputs={"parts/": counts.file()}, files="merged.txt").file()
