"""What a prune leaves is exactly what can be reached from what stays, whatever refers to what."""

import asyncio
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendflow.core.model.ids import CaseId
from mendflow.core.model.retention import PruneRule
from mendflow.core.retention.marking import Referrers, marked
from mendflow.core.retention.selection import FinishedCase, selected
from mendflow.stores.files import FolderFileStore
from mendflow.stores.memory import MemoryStore
from tests.services.retention.kit import Shelf, digest_of

NAMES = [f"f-{number}" for number in range(6)]
FILES = [f"file {number}" for number in range(6)]
names = st.sets(st.sampled_from(NAMES), max_size=3)
files = st.sets(st.sampled_from(FILES), max_size=3)
graphs = st.fixed_dictionaries(dict.fromkeys(NAMES, st.tuples(names, files, st.sampled_from(["old", "new", "live"]))))
finished = st.builds(
    FinishedCase,
    id=st.integers(0, 10**6).map(lambda number: CaseId(f"c-{number}")),
    flow=st.sampled_from(["f", "g"]),
    status=st.sampled_from(["completed", "failed", "cancelled"]),
    started_at=st.just(0),
    ended_at=st.integers(0, 1000),
    bytes=st.integers(0, 100),
)
rules = st.builds(
    PruneRule,
    flow=st.sampled_from(["", "f"]),
    states=st.lists(st.sampled_from(["completed", "failed"]), max_size=2),
    older_than_ms=st.integers(0, 1000),
    keep=st.none() | st.integers(0, 5),
    max_bytes=st.none() | st.integers(0, 300),
)
Graph = dict[str, tuple[set[str], set[str], str]]


def expected(graph: Graph, rule_cases: set[str], set_files: set[str]) -> tuple[set[str], set[str]]:
    """Which cases and files stay: those that are not old, those that a document names, and all that these reach."""
    stay = {name for name, (_, _, age) in graph.items() if age != "old"} | rule_cases
    agenda = list(stay)
    while agenda:
        reached = graph[agenda.pop()][0] - stay
        stay |= reached
        agenda += reached
    return stay, set_files.union(*(graph[name][1] for name in stay))


@given(graphs, names, files)
@pytest.mark.full
def test_what_stays_is_what_can_be_reached_from_what_is_not_old(  # DU-6
    graph: Graph, rule_cases: set[str], set_files: set[str]
) -> None:
    async def run() -> tuple[set[str], set[str], list[str]]:
        with tempfile.TemporaryDirectory() as folder:
            store, file_store = MemoryStore(), FolderFileStore(Path(folder))
            await store.open()
            file_store.open()
            shelf = Shelf(store, file_store, Path(folder))
            await shelf.keep(*FILES)
            for name, (others, own, age) in graph.items():
                status, days = ("running" if age == "live" else "completed"), (20 if age == "old" else 1)
                await shelf.case(name, files=own, cached_from=others - {name}, status=status, days_ago=days)
            await shelf.put("rules-version", "r/1", {"cornerstones": sorted(rule_cases)})
            await shelf.put("data-set", "s", {"files": [digest_of(text) for text in set_files]})
            await shelf.prune()
            gone = [trace for name in NAMES if name not in await shelf.cases() for trace in await shelf.traces(name)]
            answer = set(await shelf.cases()), await shelf.stored(FILES), gone
            await shelf.close()
            return answer

    cases, kept, left_over = asyncio.run(run())
    named = set().union(*(own for _, own, _ in graph.values()))
    stay, wanted = expected(graph, rule_cases, set_files)
    assert cases == stay
    assert kept == wanted | (set(FILES) - named), "what no case had named is nobody's to remove"
    assert left_over == []


@given(graphs, names, files)
def test_marking_keeps_exactly_what_is_reachable(graph: Graph, wanted: set[str], kept_files: set[str]) -> None:
    going = {
        CaseId(name): Referrers(cases={CaseId(other) for other in others}, files=own)
        for name, (others, own, age) in graph.items()
        if age == "old"
    }
    result = marked(going, {CaseId(name): "a document" for name in wanted}, kept_files)
    reachable, agenda = set(wanted) & set(going), list(set(wanted) & set(going))
    while agenda:
        reached = {other for other in graph[agenda.pop()][0] if other in going} - reachable
        reachable |= reached
        agenda += reached
    assert set(result.spared) == reachable
    own = set().union(*(graph[name][1] for name in going if name not in reachable))
    assert result.unreferenced == own - kept_files.union(*(graph[name][1] for name in reachable))


@given(st.lists(finished, max_size=12, unique_by=lambda case: case.id), rules)
def test_a_rule_lets_only_cases_go_of_which_all_that_it_gives_says_so(
    cases: list[FinishedCase], rule: PruneRule
) -> None:
    gone = selected(cases, [rule], now=1000)
    for case in cases:
        if case.id in gone:
            assert rule.flow in ("", case.flow) and (not rule.states or case.status in rule.states)
            assert 1000 - case.ended_at >= rule.older_than_ms
            newer = [
                each
                for each in cases
                if each.flow == case.flow
                and (not rule.states or each.status in rule.states)
                and (each.ended_at, each.id) > (case.ended_at, case.id)
            ]
            assert rule.keep is None or len(newer) >= rule.keep
    if rule.max_bytes is not None and gone:
        meant = [each for each in cases if rule.flow in ("", each.flow)]
        meant = [each for each in meant if not rule.states or each.status in rule.states]
        rest = sum(each.bytes for each in meant if each.id not in gone)
        last = next(each for each in cases if each.id == list(gone)[-1])
        assert rest + last.bytes > rule.max_bytes, "without the last one it was still too much"


@given(st.lists(finished, max_size=12, unique_by=lambda case: case.id), rules, rules)
def test_two_rules_let_go_what_either_does(cases: list[FinishedCase], one: PruneRule, other: PruneRule) -> None:
    both = selected(cases, [one, other], now=1000)
    assert set(both) == {*selected(cases, [one], now=1000), *selected(cases, [other], now=1000)}
    order = {case.id: (case.ended_at, case.id) for case in cases}
    assert list(both) == sorted(both, key=lambda id: order[id]), "the oldest first"
