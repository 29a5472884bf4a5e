"""Dependencies of tasks: those that a trace states, and those that follow from its files.

A trace records something that happened, so its dependencies have an order. Files may contradict it: one that is written
again later has the same name. Then the stated dependencies decide, and a file that could only come from the future
existed before."""

from collections.abc import Iterable, Mapping

TaskNeeds = dict[str, dict[str, None]]
"""For each task those that it waits for, each once and in a fixed order."""


def order_of(needs: Mapping[str, Iterable[str]]) -> dict[str, int]:
    """Each task's place in an order in which nothing comes before what it needs. Tasks in a cycle have none."""
    waits = {task: 0 for task in needs}
    after: dict[str, list[str]] = {task: [] for task in needs}
    for task, firsts in needs.items():
        for first in firsts:
            after[first].append(task)
            waits[task] += 1
    ready = [task for task, count in waits.items() if not count]
    for task in ready:
        for then in after[task]:
            waits[then] -= 1
            if not waits[then]:
                ready.append(then)
    return {task: place for place, task in enumerate(ready)}


def cycle_in(needs: Mapping[str, Iterable[str]]) -> list[str]:
    """One circle of tasks that wait for each other, if there is any; the last waits for the first."""
    ordered = order_of(needs)
    stuck = {task: [first for first in firsts if first not in ordered] for task, firsts in needs.items()}
    task = next((task for task in needs if task not in ordered and stuck[task]), "")
    seen: dict[str, int] = {}
    while task and task not in seen:
        seen[task] = len(seen)
        task = stuck[task][0]
    return list(seen)[seen[task] :][::-1] if task else []


def producers_of(
    reads: Mapping[str, Iterable[str]], makes: Mapping[str, Iterable[str]], stated: Mapping[str, Iterable[str]]
) -> dict[str, dict[str, str]]:
    """For each task, which other makes a file that it reads, as far as that can have been so. Of several makers of a
    file the one that the task is said to need is meant, and of several of those the last."""
    makers: dict[str, list[str]] = {}
    for task, files in makes.items():
        for file in files:
            makers.setdefault(file, []).append(task)
    found = {task: _makers_for(task, files, makers, stated[task]) for task, files in reads.items()}
    together = {task: {*stated[task], *found[task].values()} for task in reads}
    if len(order_of(together)) == len(together):
        return found
    order = order_of(stated)
    return {
        task: {file: maker for file, maker in files.items() if order[maker] < order[task]}
        for task, files in found.items()
    }


def _makers_for(
    task: str, files: Iterable[str], makers: Mapping[str, list[str]], needs: Iterable[str]
) -> dict[str, str]:
    needed = set(needs)
    found = {}
    for file in files:
        others = [maker for maker in makers.get(file, ()) if maker != task]
        if others:
            found[file] = next((maker for maker in reversed(others) if maker in needed), others[0])
    return found
