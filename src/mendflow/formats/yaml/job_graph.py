"""Named jobs, in parallel where `needs` allows: a parallel whose links are the needs.

A job needs what it lists, and every job beside it whose results it uses. `needs` joins with all; a link of `after` must
be decided but does not affect whether the job runs."""

from typing import Final, Literal

import msgspec

from mendflow.core.expressions.scanner import ENDS
from mendflow.core.model.flow import Activity, Parallel
from mendflow.formats.links import JobNeeds, parallel_with_links, runs_without
from mendflow.formats.spelling import nearest_word
from mendflow.formats.yaml import flow_keys
from mendflow.formats.yaml.builder import NAME, StepBuilder, StepHeader
from mendflow.formats.yaml.document import ListNode, MapNode, SourceSpan, YamlNode, describe
from mendflow.formats.yaml.reader import NameUse, YamlReader

SHOWN_MAX: Final = 12


class NamedJob(msgspec.Struct):
    """A job of the map: its activity, its needs, and their places."""

    activity: Activity
    place: SourceSpan
    uses: list[NameUse]
    needs: dict[str, SourceSpan]
    after: dict[str, SourceSpan]


def parallel_jobs(
    build: StepBuilder, node: YamlNode, header: StepHeader, on_fault: Literal["stop", "finish"]
) -> Activity:
    if not isinstance(node, MapNode):
        hint = "; a job's name stands before it, as `align: {run: ...}`, and a list is `steps:`"
        told = hint if isinstance(node, ListNode) else ""
        build.reader.problem(node, f"a map of jobs by name is expected here, not {describe(node)}{told}")
        return Parallel(branches=(), **header.node())
    if not node.entries:
        build.reader.problem(node, "`jobs` needs at least one job")
    jobs: dict[str, NamedJob] = {}
    homes: dict[str, str] = {}
    for name, entry in node.entries.items():
        if NAME.read(build.reader, msgspec.structs.replace(entry.key, value=name)) is None:
            continue
        uses, named = len(build.reader.uses), len(build.named)
        activity = build.step(entry.value, name, flow_keys.IN_JOBS)
        homes.update(dict.fromkeys(build.named[named:], name))
        needs, after = (named_needs(build.reader, entry.value, key) for key in ("needs", "after"))
        jobs[name] = NamedJob(activity, entry.key.place, build.reader.uses[uses:], needs, after)
    for name, job in jobs.items():
        add_implied_needs(build.reader, name, job, homes)
        require_known(build.reader, name, job, jobs)
    refuse_cycles(build.reader, jobs)
    awaited = {name: JobNeeds(job.activity, tuple(job.needs), tuple(job.after)) for name, job in jobs.items()}
    return msgspec.structs.replace(
        parallel_with_links(header.name, awaited, on_fault), label=header.label, when=header.when
    )


def named_needs(reader: YamlReader, node: YamlNode, key: str) -> dict[str, SourceSpan]:
    """The names under `needs` or `after`, each with its place."""
    entry = node.entries.get(key) if isinstance(node, MapNode) else None
    if entry is None or (names := flow_keys.IN_JOBS[key].shape.read(reader, entry.value)) is None:
        return {}
    places = [part.place for part in entry.value.parts] if isinstance(entry.value, ListNode) else [entry.value.place]
    return {name: place for name, place in zip(names, places, strict=True) if name is not None}


def add_implied_needs(reader: YamlReader, name: str, job: NamedJob, homes: dict[str, str]) -> None:
    """Using a job's result is needing it; asking how it ended is waiting for its end, however that is. A condition that
    asks whether a job failed says so of a job that is needed too, and `always()` of all of them."""
    asked = {home: use.place for use in job.uses if (home := homes.get(asked_end(use))) is not None and home != name}
    for other in [each for each in job.needs if runs_without(job.activity, each)]:
        job.after.setdefault(other, job.needs.pop(other))
    for other, place in asked.items():
        if other not in job.needs:
            job.after.setdefault(other, place)
    for use in job.uses:
        family, _, used = use.reference.name.partition(".")
        home = homes.get(used) if family in ("jobs", ENDS) else None
        if home == name and used == name and name not in use.aliases:
            reader.problem(use.place, f"`jobs.{name}` is asked for by `{name}` itself, before it has ended")
        elif home is not None and home != name and home not in job.after:
            job.needs.setdefault(home, use.place)


def asked_end(use: NameUse) -> str:
    family, _, name = use.reference.name.partition(".")
    return name if family == ENDS else ""


def require_known(reader: YamlReader, name: str, job: NamedJob, jobs: dict[str, NamedJob]) -> None:
    for group in (job.needs, job.after):
        for other, place in list(group.items()):
            if other in jobs and other != name:
                continue
            del group[other]
            if other == name:
                reader.problem(place, f"`{name}` cannot wait for itself")
            else:
                others = [each for each in jobs if each != name]
                reader.problem(place, f"there is no job `{other}` beside `{name}`", nearest_word(other, others))
    for other in job.needs.keys() & job.after.keys():
        reader.problem(job.after[other], f"`{other}` stands under `needs` already, which says more")
        del job.after[other]


def cycle_text(circle: list[str]) -> str:
    """A cycle for people, its middle left out if it is long."""
    names = circle if len(circle) <= SHOWN_MAX else [*circle[: SHOWN_MAX - 3], "...", *circle[-3:]]
    return " -> ".join(names)


def refuse_cycles(reader: YamlReader, jobs: dict[str, NamedJob]) -> None:
    """Follow the needs; a job that is met again on its own path closes a cycle."""
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
                        reader.problem(place, f"these jobs wait for each other in a cycle: {cycle_text(circle)}")
                        done.add(other)
                    else:
                        pending.append((other, False))
