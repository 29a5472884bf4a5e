"""Beyond the paper: what its authors left for later, played in the same grid with the same scheduler.

Caches that hosts of a site share, which files a full cache lets go, pilots that live for a while only, jobs that are
more urgent than others, several sites, and a million jobs. Each is a scenario that gives a table and a figure."""

from experiments.beyond.report import SCENARIOS, BeyondReport, beyond

__all__ = ["SCENARIOS", "BeyondReport", "beyond"]
