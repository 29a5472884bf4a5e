"""The scenarios by name, and the files that tell of them."""

from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import Final

import msgspec

from experiments.beyond.domains import domains
from experiments.beyond.findings import ScenarioFindings, ScenarioPlan, Tell
from experiments.beyond.lives import lives
from experiments.beyond.million import million
from experiments.beyond.policies import policies
from experiments.beyond.priorities import priorities
from experiments.beyond.sharing import sharing
from experiments.beyond.sites import sites
from mendflow.core.model.errors import InvalidRequest
from mendflow.pages.charts.pages import ChartTable, page, write_figures

MILLION: Final = "million"
_SCENARIO_FUNCTIONS: Final[dict[str, Callable[[ScenarioPlan], ScenarioFindings]]] = {
    "sharing": sharing,
    "policies": policies,
    "lives": lives,
    "priorities": priorities,
    "sites": sites,
    "domains": domains,
    MILLION: million,
}
SCENARIOS: Final = MappingProxyType(
    {
        "sharing": "Caches that the hosts of a site share, beside the paper's schemes.",
        "policies": "What a full cache lets go: lru, lfu, lru-k and cost.",
        "lives": "Pilots that may live for a while only.",
        "priorities": "A few urgent jobs that come while many wait.",
        "sites": "The same pilots at one site, and spread over several.",
        "domains": "Three domains with uneven load and data, and four ways to send jobs.",
        MILLION: "1,000,000 jobs on 10,000 pilots of 10 sites; only when it is asked for.",
    }
)

DEFAULT_SCENARIOS: Final = tuple(each for each in SCENARIOS if each != MILLION)
"""What is played when nothing is named."""


class BeyondReport(msgspec.Struct, frozen=True, kw_only=True):
    """A sentence, numbers and a table of each scenario, and which files were written. After those of a scenario come a
    sentence and a table of what it cost this machine, if that was measured; such numbers stand in `measured`."""

    numbers: dict[str, dict[str, float]]
    measured: dict[str, dict[str, float]]
    sentences: tuple[str, ...]
    tables: tuple[ChartTable, ...]
    written: tuple[str, ...] = ()


def beyond(
    *,
    scenarios: tuple[str, ...] = (),
    jobs: int = 0,
    seed: int = 1,
    seeds: int = 3,
    folder: Path,
    tell: Tell = lambda _: None,
) -> BeyondReport:
    """Play these scenarios, all but the million if none is named. `jobs` is for how many jobs where a scenario can have
    any number; 0: as it says."""
    if strange := [each for each in scenarios if each not in SCENARIOS]:
        raise InvalidRequest(
            f"there is no scenario {strange[0]!r}; choose among {', '.join(SCENARIOS)}", field="scenarios"
        )
    plan = ScenarioPlan(seeds=tuple(range(seed, seed + max(1, seeds))), jobs=jobs, tell=tell)
    findings: dict[str, ScenarioFindings] = {}
    for name in scenarios or DEFAULT_SCENARIOS:
        tell(f"{name}: {SCENARIOS[name]}")
        findings[name] = _SCENARIO_FUNCTIONS[name](plan)
    measured = {name: each.measured.numbers for name, each in findings.items() if each.measured is not None}
    told = [part for each in findings.values() for part in (each, each.measured) if part is not None]
    return BeyondReport(
        numbers={name: each.numbers for name, each in findings.items()},
        measured=measured,
        sentences=tuple(part.sentence for part in told),
        tables=tuple(part.table for part in told),
        written=tuple(map(str, _write(folder, list(findings.values()), measured))),
    )


def _write(folder: Path, found: list[ScenarioFindings], measured: dict[str, dict[str, float]]) -> list[Path]:
    """What hangs on the machine has a file of its own, so that all others are the same for the same seed."""
    figures = [figure for each in found for figure in each.figures]
    texts = {"beyond.html": page("Beyond the paper", "", figures, [each.table for each in found])}
    if measured:
        texts = {"measured.json": msgspec.json.format(msgspec.json.encode(measured), indent=1).decode() + "\n", **texts}
    written = write_figures(folder, figures)
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [*written, *(folder / name for name in texts)]
