"""Jobs by name, run at once where `needs` allows: a parallel whose links are the needs.

A job needs what it says it needs, and every job beside it whose results it uses. `needs` joins with all; a link of
`after` must be decided but has no say in whether the job runs."""

from typing import Final, Literal

import msgspec

from mendflow.core.model.flow import Activity, Parallel
from mendflow.formats.links import Awaited, linked
from mendflow.formats.spelling import nearest
from mendflow.formats.yaml import tables
from mendflow.formats.yaml.build import NAME, Build, Seat
from mendflow.formats.yaml.document import Entries, Items, Node, Place, describe
from mendflow.formats.yaml.reading import Reading, Use

SHOWN_MAX: Final = 12


class Named(msgspec.Struct):
    """A job of the map: what it became, what it needs, and where that is said."""

    activity: Activity
    place: Place
    uses: list[Use]
    needs: dict[str, Place]
    after: dict[str, Place]


def parallel_jobs(build: Build, node: Node, seat: Seat, on_fault: Literal["stop", "finish"]) -> Activity:
    if not isinstance(node, Entries):
        build.reading.problem(node, f"a map of jobs by name is expected here, not {describe(node)}")
        return Parallel(branches=(), **seat.node())
    if not node.entries:
        build.reading.problem(node, "`jobs` needs at least one job")
    jobs: dict[str, Named] = {}
    homes: dict[str, str] = {}
    for name, entry in node.entries.items():
        if NAME.read(build.reading, msgspec.structs.replace(entry.key, value=name)) is None:
            continue
        uses, named = len(build.reading.uses), len(build.named)
        activity = build.step(entry.value, name, tables.IN_JOBS)
        homes.update(dict.fromkeys(build.named[named:], name))
        needs, after = (said(build.reading, entry.value, key) for key in ("needs", "after"))
        jobs[name] = Named(activity, entry.key.place, build.reading.uses[uses:], needs, after)
    for name, job in jobs.items():
        add_used(build.reading, name, job, homes)
        demand_known(build.reading, name, job, jobs)
    refuse_circles(build.reading, jobs)
    awaited = {name: Awaited(job.activity, tuple(job.needs), tuple(job.after)) for name, job in jobs.items()}
    return msgspec.structs.replace(linked(seat.name, awaited, on_fault), label=seat.label, when=seat.when)


def said(reading: Reading, node: Node, key: str) -> dict[str, Place]:
    """The names under `needs` or `after`, each with its place."""
    entry = node.entries.get(key) if isinstance(node, Entries) else None
    if entry is None or (names := tables.IN_JOBS[key].shape.read(reading, entry.value)) is None:
        return {}
    places = [part.place for part in entry.value.parts] if isinstance(entry.value, Items) else [entry.value.place]
    return {name: place for name, place in zip(names, places, strict=True) if name is not None}


def add_used(reading: Reading, name: str, job: Named, homes: dict[str, str]) -> None:
    """Using a job's result is needing it."""
    for use in job.uses:
        used = use.reference.name.removeprefix("jobs.")
        home = homes.get(used) if use.reference.name.startswith("jobs.") else None
        if home == name and used == name and name not in use.aliases:
            reading.problem(use.place, f"`jobs.{name}` is asked for by `{name}` itself, before it has ended")
        elif home is not None and home != name and home not in job.after:
            job.needs.setdefault(home, use.place)


def demand_known(reading: Reading, name: str, job: Named, jobs: dict[str, Named]) -> None:
    for group in (job.needs, job.after):
        for other, place in list(group.items()):
            if other in jobs and other != name:
                continue
            del group[other]
            if other == name:
                reading.problem(place, f"`{name}` cannot wait for itself")
            else:
                others = [each for each in jobs if each != name]
                reading.problem(place, f"there is no job `{other}` beside `{name}`", nearest(other, others))
    for other in job.needs.keys() & job.after.keys():
        reading.problem(job.after[other], f"`{other}` stands under `needs` already, which says more")
        del job.after[other]


def shown(circle: list[str]) -> str:
    """A circle as people read it, its middle left out if it is long."""
    names = circle if len(circle) <= SHOWN_MAX else [*circle[: SHOWN_MAX - 3], "...", *circle[-3:]]
    return " -> ".join(names)


def refuse_circles(reading: Reading, jobs: dict[str, Named]) -> None:
    """Walk along the needs; a job that is met again on its own way closes a circle."""
    done: set[str] = set()
    for start in jobs:
        way: dict[str, None] = {}
        pending: list[tuple[str, bool]] = [(start, False)]
        while pending:
            name, leaving = pending.pop()
            if leaving:
                del way[name]
                done.add(name)
            elif name not in done and name not in way:
                way[name] = None
                pending.append((name, True))
                for other, place in (jobs[name].needs | jobs[name].after).items():
                    if other in way:
                        names = list(way)
                        circle = [*names[names.index(other) :], other]
                        reading.problem(place, f"these jobs wait for each other in a circle: {shown(circle)}")
                        done.add(other)
                    else:
                        pending.append((other, False))
